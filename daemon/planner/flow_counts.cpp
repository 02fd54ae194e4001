// SPDX-License-Identifier: Apache-2.0
#include "planner/flow_counts.hpp"

namespace affinityd::planner {

namespace {

constexpr std::string_view suffix = "-flows";
constexpr std::string_view entries = "flow-entries";
constexpr unsigned bits_of_number = 32;

} // namespace

SteeringMask queue_flows(std::string device, std::string nic, unsigned queue) {
    return {std::move(device), std::move(nic), "rx-" + std::to_string(queue) + std::string(suffix)};
}

SteeringMask machine_flows() { return {"", "machine", std::string(entries)}; }

bool is_machine_flows(const SteeringMask& subject) {
    return subject.device.empty() && subject.queue == entries;
}

bool is_flow_count(const Subject& subject) {
    const auto* steering = std::get_if<SteeringMask>(&subject);
    return steering != nullptr && (is_machine_flows(*steering) || steering->queue.ends_with(suffix));
}

std::string queue_of(const SteeringMask& subject) {
    return subject.queue.ends_with(suffix) ? subject.queue.substr(0, subject.queue.size() - suffix.size())
                                           : subject.queue;
}

CpuSet to_bits(std::uint32_t number) {
    CpuSet bits;
    for (unsigned bit = 0; bit < bits_of_number; ++bit)
        if ((number >> bit & 1U) != 0) bits.insert(bit);
    return bits;
}

std::uint32_t from_bits(const CpuSet& bits) {
    std::uint32_t number = 0;
    for (const unsigned bit : bits)
        if (bit < bits_of_number) number |= 1U << bit;
    return number;
}

std::string mask_text(const Subject& subject, const CpuSet& mask) {
    return is_flow_count(subject) ? std::to_string(from_bits(mask)) : mask.to_list();
}

} // namespace affinityd::planner
