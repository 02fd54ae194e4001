// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/alike_cores.hpp"

#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/topology/cpu_list.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

using affinityd::CpuSet;
using affinityd::topology::Topology;
using Kind = Part::Kind;

namespace {

/// Adds the CPUs of a core to what is known of it; false if they differ in more than their numbers.
bool add_cpus(PlainCore& plain, const Part& core, const Topology& topology) {
    for (const auto& inner : core.parts) {
        if (inner.kind != Kind::cpu) return false;
        const unsigned cpu = inner.cpus.first();
        auto marks = fmt::format("{}", fmt::join(boot_marks(topology, cpu), ", "));
        if (!plain.cpus.empty() && marks != plain.marks) return false;
        plain.marks = std::move(marks);
        plain.cpus.push_back(cpu);
    }
    return true;
}

std::optional<PlainCore> plain_core(const Part& top, const PartNames& names, const Topology& topology,
                                    const std::function<bool(const Part&)>& is_bare) {
    PlainCore plain;
    const Part* part = &top;
    for (; part->kind != Kind::core && is_bare(*part); part = &part->parts[0]) {
        // Caches from the third level on have numbers of their own.
        const bool is_private = part->kind == Kind::cache && topology.caches[part->index].level < 3 &&
                                part->parts.size() == 1 && part->parts[0].cpus == part->cpus;
        if (!is_private) return std::nullopt;
        plain.caches += (plain.caches.empty() ? "" : " + ") + names.of(*part);
    }
    if (!is_bare(*part) || !add_cpus(plain, *part, topology)) return std::nullopt;
    plain.kind = names.kind_of(*part);
    plain.number = part->index;
    return plain;
}

bool are_alike(const PlainCore& a, const PlainCore& b) {
    return a.caches == b.caches && a.kind == b.kind && a.marks == b.marks && a.cpus.size() == b.cpus.size();
}

} // namespace

std::vector<PlainCore> alike_cores(const std::vector<Part>& parts, std::size_t from, const PartNames& names,
                                   const Topology& topology,
                                   const std::function<bool(const Part&)>& is_bare) {
    std::vector<PlainCore> alike;
    for (; from < parts.size(); ++from) {
        auto core = plain_core(parts[from], names, topology, is_bare);
        if (!core || (!alike.empty() && !are_alike(alike[0], *core))) break;
        alike.push_back(std::move(*core));
    }
    return alike;
}

std::string alike_text(const std::vector<PlainCore>& cores) {
    CpuSet numbers;
    std::vector<CpuSet> threads(cores[0].cpus.size());
    for (const auto& core : cores) {
        numbers.insert(static_cast<unsigned>(core.number));
        for (std::size_t i = 0; i < core.cpus.size(); ++i)
            threads[i].insert(core.cpus[i]);
    }
    std::string text = cores[0].caches + (cores[0].caches.empty() ? "" : " + ") + "cores " +
                       short_list(numbers) + (cores[0].kind.empty() ? "" : " (" + cores[0].kind + ")") +
                       fmt::format(", {} alike: CPUs ", cores.size());
    for (std::size_t i = 0; i < threads.size(); ++i)
        text += (i == 0 ? "" : " + ") + short_list(threads[i]);
    return text;
}

} // namespace affinityctl
