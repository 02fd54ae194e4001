// SPDX-License-Identifier: Apache-2.0
#include "inventory/listener_filter.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include <linux/inet_diag.h>

namespace affinityd::inventory {

namespace {

constexpr unsigned op_size = sizeof(inet_diag_bc_op);
/// The operation, and a second one that carries the port.
constexpr unsigned comparison_size = 2 * op_size;

void add(std::vector<std::byte>& program, unsigned code, unsigned yes, unsigned no) {
    const inet_diag_bc_op op{static_cast<unsigned char>(code), static_cast<unsigned char>(yes),
                             static_cast<unsigned short>(no)};
    const auto at = program.size();
    program.resize(at + sizeof op);
    std::memcpy(program.data() + at, &op, sizeof op);
}

} // namespace

PortRanges few_ranges(PortRanges ports, std::size_t most) {
    std::ranges::sort(ports);
    PortRanges apart;
    for (const auto& range : ports)
        if (!apart.empty() && range.first <= apart.back().second + 1)
            apart.back().second = std::max(apart.back().second, range.second);
        else
            apart.push_back(range);
    if (apart.size() <= std::max<std::size_t>(most, 1)) return apart;
    std::vector<std::size_t> gaps; // by the range that follows, the widest first
    for (std::size_t i = 1; i < apart.size(); ++i)
        gaps.push_back(i);
    std::ranges::stable_sort(gaps, std::ranges::greater(),
                             [&](std::size_t i) { return apart[i].first - apart[i - 1].second; });
    gaps.resize(std::max<std::size_t>(most, 1) - 1);
    std::ranges::sort(gaps);
    PortRanges few{apart.front()};
    for (const auto gap : gaps) {
        few.back().second = apart[gap - 1].second;
        few.push_back(apart[gap]);
    }
    few.back().second = apart.back().second;
    return few;
}

/// A jump to just behind the end takes the socket, one further than that leaves it. What follows an operation
/// in memory is where it goes on with "yes": the kernel checks programs along that way.
std::vector<std::byte> listener_filter(const PortRanges& ports) {
    constexpr unsigned range_size = 2 * comparison_size + op_size;
    std::vector<std::byte> program;
    for (std::size_t i = 0; i < ports.size(); ++i) {
        const bool is_last = i + 1 == ports.size();
        const auto left = static_cast<unsigned>((ports.size() - i) * range_size - op_size); // of the program
        const unsigned next = is_last ? left + op_size : range_size;
        add(program, INET_DIAG_BC_S_GE, comparison_size, next);
        add(program, INET_DIAG_BC_NOP, op_size, ports[i].first);
        add(program, INET_DIAG_BC_S_LE, comparison_size, next - comparison_size);
        add(program, INET_DIAG_BC_NOP, op_size, ports[i].second);
        if (!is_last) add(program, INET_DIAG_BC_JMP, op_size, left - 2 * comparison_size);
    }
    return program;
}

} // namespace affinityd::inventory
