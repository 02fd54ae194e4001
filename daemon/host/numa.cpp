// SPDX-License-Identifier: Apache-2.0
#include "host/numa.hpp"

#include <array>
#include <cerrno>
#include <cstddef>

#include <sys/syscall.h>
#include <unistd.h>

namespace affinityd::host {

namespace {

constexpr unsigned most_nodes = 1024; // MAX_NUMNODES of any configuration
constexpr unsigned bits = 8 * sizeof(unsigned long);
using NodeMask = std::array<unsigned long, most_nodes / bits>;

NodeMask mask_of(const std::vector<unsigned>& nodes) {
    NodeMask mask{};
    for (const unsigned node : nodes)
        if (node < most_nodes) mask[node / bits] |= 1UL << node % bits;
    return mask;
}

} // namespace

std::expected<long, int> migrate_pages(int pid, const std::vector<unsigned>& from,
                                       const std::vector<unsigned>& to) {
    const auto old_nodes = mask_of(from);
    const auto new_nodes = mask_of(to);
    // The kernel takes the number of bits plus one.
    const long left = ::syscall(SYS_migrate_pages, pid, most_nodes + 1UL, old_nodes.data(), new_nodes.data());
    if (left < 0) return std::unexpected(errno);
    return left;
}

} // namespace affinityd::host
