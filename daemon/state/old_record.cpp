// SPDX-License-Identifier: Apache-2.0
#include "state/old_record.hpp"

#include "base/cpu_set.hpp"

#include <cstdint>

namespace affinityd::state {

namespace {

constexpr std::string_view of_machine = "flow-entries";
constexpr std::string_view direction = "rx-";
constexpr std::string_view suffix = "-flows";
constexpr unsigned bits_of_count = 32;

/// "" if there are no such bits: then the line is no record.
std::string count_of(std::string_view bits) {
    const auto set = CpuSet::parse_list(bits);
    if (!set) return {};
    std::uint32_t count = 0;
    for (const unsigned bit : *set) {
        if (bit >= bits_of_count) return {};
        count |= 1U << bit;
    }
    return std::to_string(count);
}

/// The queue's number; "" if it is no flow table.
std::string_view queue_of(std::string_view device, std::string_view queue) {
    if (queue == of_machine && device.empty()) return "0";
    if (!queue.starts_with(direction) || !queue.ends_with(suffix)) return {};
    if (queue.size() <= direction.size() + suffix.size()) return {};
    return queue.substr(direction.size(), queue.size() - direction.size() - suffix.size());
}

} // namespace

void renew_flow_fields(std::vector<std::string_view>& fields, std::array<std::string, 3>& counts) {
    if (fields[0] != "steering") return;
    const auto queue = queue_of(fields[1], fields[3]);
    if (queue.empty()) return;
    fields[0] = "flows";
    fields[3] = queue;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        counts[i] = count_of(fields[6 + i]);
        fields[6 + i] = counts[i];
    }
}

} // namespace affinityd::state
