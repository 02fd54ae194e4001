// SPDX-License-Identifier: Apache-2.0
#include "topology/latencies.hpp"

#include "topology/topology.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::topology {

namespace {

MeasuredMachine::Place place_of(const Cpu& cpu) { return {cpu.package.value_or(-1), cpu.core.value_or(-1)}; }

/// Of two different places in a lower triangle.
std::size_t cell_of(std::size_t a, std::size_t b) {
    const auto [low, high] = std::minmax(a, b);
    return high * (high - 1) / 2 + low;
}

std::optional<std::size_t> index_of(const std::vector<unsigned>& cpus, unsigned cpu) {
    const auto found = std::ranges::lower_bound(cpus, cpu);
    if (found == cpus.end() || *found != cpu) return std::nullopt;
    return static_cast<std::size_t>(found - cpus.begin());
}

} // namespace

Latencies::Latencies(const CpuSet& cpus, MeasuredMachine machine)
    : cpus_(cpus.to_vector()), machine_(std::move(machine)) {
    cpus_.resize(std::min(cpus_.size(), most_cpus));
    ns_.resize(cpus_.empty() ? 0 : cpus_.size() * (cpus_.size() - 1) / 2);
}

std::optional<double> Latencies::at(std::size_t a, std::size_t b) const {
    if (a == b) return std::nullopt;
    const float value = ns_[cell_of(a, b)];
    return value > 0 ? std::optional<double>(value) : std::nullopt;
}

std::optional<double> Latencies::ns(unsigned a, unsigned b) const {
    const auto first = index_of(cpus_, a), second = index_of(cpus_, b);
    return first && second ? at(*first, *second) : std::nullopt;
}

void Latencies::set(unsigned a, unsigned b, double ns) {
    const auto first = index_of(cpus_, a), second = index_of(cpus_, b);
    if (first && second && a != b && ns > 0 && ns <= most_ns)
        ns_[cell_of(*first, *second)] = static_cast<float>(ns);
}

std::size_t Latencies::measured() const {
    return static_cast<std::size_t>(std::ranges::count_if(ns_, [](float ns) { return ns > 0; }));
}

bool Latencies::is_of(const Topology& topology, std::string_view model) const {
    if (machine_.places.empty() || machine_.places.size() != cpus_.size() || machine_.model != model)
        return false;
    for (std::size_t i = 0; i < cpus_.size(); ++i)
        if (const auto* cpu = topology.find(cpus_[i]); cpu != nullptr && place_of(*cpu) != machine_.places[i])
            return false;
    return true;
}

MeasuredMachine describe(const Topology& topology, const CpuSet& cpus, std::string model) {
    MeasuredMachine machine{std::move(model), {}};
    for (const unsigned number : cpus) {
        const auto* cpu = topology.find(number);
        machine.places.push_back(cpu == nullptr ? MeasuredMachine::Place{} : place_of(*cpu));
    }
    return machine;
}

} // namespace affinityd::topology
