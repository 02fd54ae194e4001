// SPDX-License-Identifier: Apache-2.0
// Any bytes as a CPU-set expression: a fault has a place in the text; an accepted expression is the same
// after printing and reading it, names CPUs of the machine only, and obeys the laws of sets.
#include "planner/slots.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using affinityd::CpuSet;
namespace policy = affinityd::policy;

void require(bool promise) {
    if (!promise) std::abort();
}

/// Two packages of two cores of two threads, CPU 7 offline, and a little of everything else.
affinityd::topology::Topology machine() {
    affinityd::topology::Topology topology;
    topology.possible = topology.present = CpuSet::range(0, 7);
    topology.online = CpuSet::range(0, 6);
    topology.offline = CpuSet{7};
    topology.isolated = CpuSet{5};
    topology.nohz_full = CpuSet{6};
    topology.housekeeping = CpuSet::range(0, 4);
    for (unsigned package = 0; package < 2; ++package) {
        const CpuSet cpus = CpuSet::range(package * 4, package * 4 + 3) & topology.online;
        topology.packages.push_back(cpus);
        topology.caches.push_back({3, affinityd::topology::Cache::Type::unified, 1 << 20, cpus});
        topology.nodes.push_back({package * 2, cpus, 1 << 30, {}});
        for (unsigned core = 0; core < 2; ++core) {
            const CpuSet smt =
                CpuSet::range(package * 4 + core * 2, package * 4 + core * 2 + 1) & topology.online;
            topology.cores.push_back(smt);
            for (const unsigned cpu : smt)
                topology.cpus.push_back(
                    {cpu, static_cast<int>(package), {}, {}, static_cast<int>(core), package * 2, {}, smt});
        }
    }
    topology.kinds = {{"performance", 0, CpuSet{0, 1}}, {"efficiency", 1, CpuSet::range(2, 6)}};
    return topology;
}

void in_text(const policy::CpuExprError& error, std::size_t size) {
    require(!error.message.empty() && error.length >= 1 && error.offset <= size &&
            error.offset + error.length <= size + 1);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto topology = machine();
    static const std::map<std::string, CpuSet, std::less<>> nics{{"eth0", CpuSet::range(0, 3)},
                                                                 {"br-lan", CpuSet{0}}};
    const std::string text(reinterpret_cast<const char*>(data), size);
    const auto expr = policy::parse_cpu_expr(text);
    if (!expr) {
        in_text(expr.error(), size);
        return 0;
    }
    require(expr->offset + expr->length <= size);
    const auto printed = policy::to_string(*expr);
    const auto cpus = affinityd::planner::evaluate(*expr, topology, nics, CpuSet{4, 5});
    if (!cpus)
        in_text(cpus.error(), size);
    else
        require(topology.possible.contains(*cpus));
    if (printed.size() > 4096) return 0; // longer than a policy may be
    const auto again = policy::parse_cpu_expr(printed);
    require(again && *again == *expr);
    if (!cpus || printed.size() > 4000) return 0;
    const auto other = policy::parse_cpu_expr("!(" + printed + ")");
    if (!other) return 0; // deeper than allowed
    require(*affinityd::planner::evaluate(*other, topology, nics, CpuSet{4, 5}) == topology.online - *cpus);
    return 0;
}
