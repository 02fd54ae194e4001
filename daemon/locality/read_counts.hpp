// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::locality {

/// Reads of one process whose packets were taken in on one CPU, and which it read on another, or the same.
struct ReadCount {
    int pid = 0;                     ///< as this PID namespace has it
    std::uint64_t network_space = 0; ///< inode of the socket's network namespace; 0: not known
    unsigned device = 0; ///< ifindex there of the interface where the flow came in last; 0: not known
    unsigned napi = 0;   ///< NAPI instance that took the flow in last; 0: not known
    std::optional<unsigned> arrival; ///< CPU of that softirq; no value: not known
    unsigned reader = 0;             ///< CPU on which it was read
    int thread = 0;                  ///< tid that reads; 0: not known
    unsigned protocol = 6;           ///< IPPROTO_TCP, IPPROTO_UDP ...
    std::uint64_t reads = 0;
};

/// What was seen in some time of who reads where the kernel takes packets in.
struct ReadCounts {
    std::vector<ReadCount> counts;
    std::map<int, std::string> names; ///< of processes; any bytes: show them through printable()
    double seconds = 0;               ///< how long it was watched
    bool has_other_protocols = true;  ///< not only TCP
    std::vector<std::string> notes{}; ///< for people: what is missing, and why
    std::uint64_t lost = 0;           ///< reads for which there was no room
    std::uint64_t in_softirq = 0;     ///< times that the kernel itself took data where no process reads
    std::uint64_t of_unknown = 0;     ///< reads of processes that ended before it was known whose they are
};

} // namespace affinityd::locality
