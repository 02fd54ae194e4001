// SPDX-License-Identifier: Apache-2.0
// affinityctl cpus EXPR: what a CPU-set expression stands for on this machine.
#include "host/root.hpp"
#include "netdev/reader.hpp"
#include "planner/cpu_expr_eval.hpp"
#include "planner/machine.hpp"
#include "policy/diagnostic.hpp"
#include "say.hpp"
#include "table.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <expected>
#include <map>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::CpuSet;
using affinityd::policy::CpuExpr;
using affinityd::policy::CpuExprError;
using nlohmann::json;
namespace planner = affinityd::planner;
namespace policy = affinityd::policy;

constexpr const char* help =
    "The language is that of `cpus:` in policies: CPU numbers (0-3,8), all, node:N, socket:N, die:N, "
    "cluster:N, llc:N, "
    "core:N, kind:NAME, smt (not the first of their core), isolated, nohz_full, housekeeping, nic:NAME (near "
    "that "
    "interface), joined by | , - & ! and ( ). The numbers are those that `affinityctl topology` shows. A "
    "bare `nic` "
    "stands for the interfaces named by --nic; without it for all that have a device, if the same CPUs are "
    "near to all. "
    "In a shell the expression stands in quotes:  affinityctl cpus 'llc:2 & !smt - housekeeping'";

struct Options {
    std::string text;
    std::vector<std::string> nics;
    bool mask = false;
};

using Near = std::map<std::string, CpuSet, std::less<>>;
/// Of a fault: the exit code, and what is wrong where. A length of 0: nowhere in the expression.
struct Fault {
    Exit code = exit_failure;
    CpuExprError error;
};
template <class T>
using Found = std::expected<T, Fault>;

std::unexpected<Fault> elsewhere(std::string message, std::string hint = {}) {
    return std::unexpected(Fault{exit_failure, {0, 0, std::move(message), std::move(hint)}});
}

/// The first `nic` or `nic:NAME` in the expression; with `bare` the first without a name.
const CpuExpr* find_nic(const CpuExpr& expr, bool bare) {
    if (expr.op == CpuExpr::Op::nic && (!bare || expr.name.empty())) return &expr;
    for (const auto& child : expr.children)
        if (const auto* found = find_nic(child, bare)) return found;
    return nullptr;
}

/// What a bare `nic`, which stands at `place`, means.
Found<CpuSet> own_nics(const Options& options, const CpuExpr& place, const planner::Machine& machine,
                       const Near& near) {
    CpuSet cpus;
    for (const auto& name : options.nics) {
        CpuExpr asked;
        asked.op = CpuExpr::Op::nic;
        asked.name = name;
        const auto found = planner::evaluate(asked, machine.topology, near, {});
        if (!found) return elsewhere("--nic: " + found.error().message, found.error().hint);
        cpus |= *found;
    }
    if (!options.nics.empty()) return cpus;
    std::string names;
    bool all_alike = true;
    for (const auto& nic : machine.nics) {
        if (nic.device.empty()) continue;
        const auto here = planner::near_cpus(machine, nic);
        all_alike = all_alike && (cpus.empty() || cpus == here);
        cpus |= here;
        names += (names.empty() ? "" : ", ") + nic.name;
    }
    if (!names.empty() && all_alike) return cpus;
    return std::unexpected(
        Fault{exit_failure,
              {place.offset, place.length,
               names.empty() ? "no interface here has a device"
                             : "which interface? Not the same CPUs are near to all",
               names.empty() ? "" : "name it with --nic or write nic:NAME; there are " + names}});
}

Found<CpuSet> evaluate(const Options& options, const CpuExpr& expr, planner::Machine& machine,
                       const affinityd::host::Root& root) {
    Near near;
    CpuSet own;
    if (find_nic(expr, false) != nullptr) {
        auto nics = affinityd::netdev::read_nics(root);
        if (!nics) return elsewhere(nics.error().to_string());
        machine.nics = std::move(*nics);
        near = planner::nic_cpus(machine);
    }
    if (const auto* bare = find_nic(expr, true)) {
        const auto found = own_nics(options, *bare, machine, near);
        if (!found) return found;
        own = *found;
    }
    auto cpus = planner::evaluate(expr, machine.topology, near, own);
    if (!cpus) return std::unexpected(Fault{exit_failure, std::move(cpus.error())});
    return std::move(*cpus);
}

/// A caret below the fault; with --json also a document.
int complain(const Fault& fault, const Options& options, const Globals& globals) {
    const auto& error = fault.error;
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
    if (!globals.json) return fault.code;
    json document{{"ok", false},
                  {"message", error.message},
                  {"hint", error.hint},
                  {"column", nullptr},
                  {"length", nullptr}};
    if (placed) document.update({{"column", column}, {"length", error.length}});
    fmt::print("{}\n", document.dump(-1, ' ', false, json::error_handler_t::replace));
    return fault.code;
}

void print(const CpuExpr& expr, const CpuSet& cpus, const affinityd::topology::Topology& topology,
           const Options& options, const Globals& globals) {
    const CpuSet offline = cpus - topology.online;
    if (globals.json) {
        const json document{{"ok", true},
                            {"expression", policy::to_string(expr)},
                            {"cpus", cpus.to_list()},
                            {"mask", cpus.to_mask()},
                            {"count", cpus.count()},
                            {"offline", offline.to_list()}};
        fmt::print("{}\n", document.dump(-1, ' ', false, json::error_handler_t::replace));
        return;
    }
    fmt::print("{}\n", options.mask ? cpus.to_mask() : cpus.to_list());
    if (cpus.empty()) fmt::print(stderr, "affinityctl: no CPU is in this set\n");
    if (!offline.empty()) fmt::print(stderr, "affinityctl: offline now: CPU {}\n", offline.to_list());
}

int cpus(const Options& options, const Globals& globals) {
    const auto expr = policy::parse_cpu_expr(options.text);
    if (!expr) return complain({exit_usage, expr.error()}, options, globals);
    const auto root = affinityd::host::Root::open(globals.root);
    if (!root) return complain(elsewhere(root.error().to_string()).error(), options, globals);
    auto topology = affinityd::topology::read_topology(*root);
    if (!topology) return complain(elsewhere(topology.error().to_string()).error(), options, globals);
    planner::Machine machine{std::move(*topology), {}, {}};
    const auto found = evaluate(options, *expr, machine, *root);
    if (!found) return complain(found.error(), options, globals);
    print(*expr, *found, machine.topology, options, globals);
    return exit_ok;
}

} // namespace

void add_cpus(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand("cpus", "what a CPU-set expression stands for on this machine");
    verb->footer(help);
    const auto options = std::make_shared<Options>();
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
