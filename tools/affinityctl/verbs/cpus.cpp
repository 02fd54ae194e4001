// SPDX-License-Identifier: Apache-2.0
// affinityctl cpus EXPR: the CPUs of a CPU-set expression on this machine.
#include "affinityctl/offline/cpu_expr.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "host/root.hpp"
#include "machine/machine.hpp"
#include "netdev/reader.hpp"
#include "policy/cpu_expr.hpp"
#include "policy/diagnostic.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using nlohmann::json;
namespace policy = affinityd::policy;

// clang-format off
constexpr Field cpus_answer[] = {
    {"ok", "", "flag", "it is understood"},
    {"expression", "", "text*", "the expression, in the usual form"},
    {"cpus", "", "cpus*", "its CPUs"},
    {"mask", "", "text*", "the same as the kernel's mask"},
    {"count", "", "count*", "how many"},
    {"offline", "", "cpus*", "those that are offline"},
    {"message", "", "text*", "else: the fault"},
    {"hint", "", "text*", "the remedy, or empty"},
    {"column", "", "count?*", "its place in the expression"},
    {"length", "", "count?*", "the length of that place"},
};
// clang-format on
const json left_out(json::value_t::discarded);

struct CpusOptions {
    std::string text;
    std::vector<std::string> nics;
    bool mask = false;
};

/// With a caret below the fault.
Document fault_document(Exit code, const CpuExprFault& error, const CpusOptions& options) {
    const bool placed = error.length > 0;
    const auto column = static_cast<unsigned>(error.offset) + 1;
    policy::Diagnostic shown;
    shown.at.file = placed ? fmt::format("affinityctl: column {}", column) : "affinityctl";
    shown.at.column = column;
    shown.length = static_cast<unsigned>(error.length);
    shown.message = error.message;
    shown.hint = error.hint;
    if (placed) shown.source_line = options.text;
    Document document;
    document.complaints.push_back(policy::to_string(shown, placed));
    document.code = code;
    document.value = record(cpus_answer, {false, left_out, left_out, left_out, left_out, left_out,
                                          error.message, error.hint, placed ? json(column) : json(),
                                          placed ? json(error.length) : json()});
    return document;
}

/// The fault, with a hint if what is not understood is an interface's name.
CpuExprFault with_nic_hint(CpuExprFault fault, const std::string& text, const affinityd::host::Root& root) {
    const auto nics = affinityd::netdev::read_nics(root);
    if (!nics || fault.offset >= text.size()) return fault;
    for (const auto& nic : *nics) {
        const auto rest = std::string_view(text).substr(fault.offset);
        const bool is_word =
            rest.starts_with(nic.name) &&
            (rest.size() == nic.name.size() ||
             std::string_view(" ,|&-!()").find(rest[nic.name.size()]) != std::string_view::npos);
        if (is_word) fault.hint = "write nic:" + nic.name;
    }
    return fault;
}

Outcome run_cpus(const CpusOptions& options, const Globals& globals) {
    const auto expr = policy::parse_cpu_expr(options.text);
    const auto unread = [&](const affinityd::Error& error) {
        return fault_document(exit_failure, {0, 0, error.to_string(), {}}, options);
    };
    const auto root = affinityd::host::Root::open(globals.root);
    if (!root) return unread(root.error());
    if (!expr) return fault_document(exit_usage, with_nic_hint(expr.error(), options.text, *root), options);
    auto topology = affinityd::topology::read_topology(*root);
    if (!topology) return unread(topology.error());
    affinityd::machine::Machine machine{std::move(*topology), {}, {}};
    const auto found = evaluate_cpu_expr(*expr, options.nics, machine, *root);
    if (!found) return fault_document(exit_failure, found.error(), options);
    const auto offline = *found - machine.topology.online;
    Document document;
    document.line(options.mask ? found->to_mask() : found->to_list());
    if (found->empty()) document.complaints.emplace_back("affinityctl: no CPU is in this set");
    if (!offline.empty()) document.complaints.push_back("affinityctl: offline now: CPU " + offline.to_list());
    document.value =
        record(cpus_answer, {true, policy::to_string(*expr), found->to_list(), found->to_mask(),
                             found->count(), offline.to_list(), left_out, left_out, left_out, left_out});
    return document;
}

} // namespace

void add_cpus(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "cpus",
                  .summary = "the CPUs that a CPU-set expression stands for here",
                  .example = "affinityctl cpus 'llc:2 & !smt - housekeeping'",
                  .answer = cpus_answer,
                  .manual = "affinityd.policy(5) has the language, affinityctl(1) the verb"},
                 globals, status, run_cpus);
    verb->add_option("EXPR", options->text, "the expression; in a shell, in quotes")->required();
    add_repeated(*verb, "--nic", options->nics,
                 "the meaning of a bare `nic`: an interface or a glob; may be given again; without: all "
                 "that have a device, if the same CPUs are near to all",
                 "NAME");
    verb->add_flag("--mask", options->mask, "print the kernel's mask form instead of a list");
}

} // namespace affinityctl
