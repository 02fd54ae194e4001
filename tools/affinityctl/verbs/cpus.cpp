// SPDX-License-Identifier: Apache-2.0
// affinityctl cpus EXPR: the CPUs of a CPU-set expression on this machine.
#include "affinityctl/offline/cpu_expr.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"
#include "host/root.hpp"
#include "netdev/reader.hpp"
#include "policy/diagnostic.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::CpuSet;
using affinityd::policy::CpuExpr;
using nlohmann::json;
namespace policy = affinityd::policy;

constexpr const char* cpus_help =
    "The language is that of `cpus:` in policies: CPU numbers (0-3,8), all, node:N, socket:N, die:N, "
    "cluster:N, llc:N, "
    "core:N, kind:NAME, smt (not the first of their core), isolated, nohz_full, housekeeping, nic:NAME (near "
    "that "
    "interface), joined by | , - & ! and ( ). The numbers are those that `affinityctl topology` shows. A "
    "bare `nic` "
    "stands for the interfaces named by --nic; without it for all that have a device, if the same CPUs are "
    "near to all. "
    "In a shell, put the expression in quotes:  affinityctl cpus 'llc:2 & !smt - housekeeping'";

struct CpusOptions {
    std::string text;
    std::vector<std::string> nics;
    bool mask = false;
};

/// Prints a caret below the fault, and with --json also a document; the exit code is `code`.
int report(Exit code, const CpuExprFault& error, const CpusOptions& options, const Globals& globals) {
    const bool placed = error.length > 0;
    const auto column = static_cast<unsigned>(error.offset) + 1;
    policy::Diagnostic shown;
    shown.at.file = placed ? fmt::format("affinityctl: column {}", column) : "affinityctl";
    shown.at.column = column;
    shown.length = static_cast<unsigned>(error.length);
    shown.message = printable(error.message);
    shown.hint = printable(error.hint);
    if (placed) shown.source_line = options.text;
    fmt::print(stderr, "{}\n", policy::to_string(shown, placed));
    if (!globals.json) return code;
    json document{{"ok", false},
                  {"message", error.message},
                  {"hint", error.hint},
                  {"column", nullptr},
                  {"length", nullptr}};
    if (placed) document.update({{"column", column}, {"length", error.length}});
    fmt::print("{}\n", dump(document));
    return code;
}

void print(const CpuExpr& expr, const CpuSet& cpus, const affinityd::topology::Topology& topology,
           const CpusOptions& options, const Globals& globals) {
    const CpuSet offline = cpus - topology.online;
    if (globals.json) {
        const json document{{"ok", true},
                            {"expression", policy::to_string(expr)},
                            {"cpus", cpus.to_list()},
                            {"mask", cpus.to_mask()},
                            {"count", cpus.count()},
                            {"offline", offline.to_list()}};
        fmt::print("{}\n", dump(document));
        return;
    }
    fmt::print("{}\n", options.mask ? cpus.to_mask() : cpus.to_list());
    if (cpus.empty()) fmt::print(stderr, "affinityctl: no CPU is in this set\n");
    if (!offline.empty()) fmt::print(stderr, "affinityctl: offline now: CPU {}\n", offline.to_list());
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

int cpus(const CpusOptions& options, const Globals& globals) {
    const auto expr = policy::parse_cpu_expr(options.text);
    const auto failed = [&](const affinityd::Error& error) {
        return report(exit_failure, not_in_text(error.to_string()), options, globals);
    };
    const auto root = affinityd::host::Root::open(globals.root);
    if (!root) return failed(root.error());
    if (!expr) return report(exit_usage, with_nic_hint(expr.error(), options.text, *root), options, globals);
    auto topology = affinityd::topology::read_topology(*root);
    if (!topology) return failed(topology.error());
    affinityd::machine::Machine machine{std::move(*topology), {}, {}};
    const auto found = evaluate_cpu_expr(*expr, options.nics, machine, *root);
    if (!found) return report(exit_failure, found.error(), options, globals);
    print(*expr, *found, machine.topology, options, globals);
    return exit_ok;
}

} // namespace

void add_cpus(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand("cpus", "what a CPU-set expression stands for on this machine");
    verb->footer(cpus_help);
    const auto options = std::make_shared<CpusOptions>();
    verb->add_option("EXPR", options->text, "the expression")->required();
    verb->add_option("--nic", options->nics,
                     "what a bare `nic` means: an interface or a glob; may be given again")
        ->type_name("NAME")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    verb->add_flag("--mask", options->mask, "print the kernel's mask form instead of a list");
    verb->callback([options, &globals, &status] { status = cpus(*options, globals); });
}

} // namespace affinityctl
