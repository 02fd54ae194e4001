// SPDX-License-Identifier: Apache-2.0
// Reads what suggest() wants to know of the servers of this machine or a recording.
#pragma once

#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/survey/suggestion.hpp"
#include "host/root.hpp"
#include "inventory/process_files.hpp"
#include "locality/locality.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace affinityctl {

/// A library that programs ask for the number of CPUs, among those that the processes have mapped; "": none.
[[nodiscard]] std::string counting_library(const affinityd::host::Root& root, const std::vector<int>& pids);

/// CPU time of threads at a moment, and where they ran.
using RunRecords = std::map<std::pair<int, std::uint64_t>, affinityd::inventory::RunRecord>;

/// All that was watched.
struct Watched {
    RunRecords before;
    std::optional<affinityd::locality::ReadCounts> reads;
    double seconds = 0; ///< 0: a recording
    std::vector<std::string> notes;
    bool has_bpf = true;
};

/// Watches this machine for that time; counts reads if it may load BPF programs.
[[nodiscard]] Watched watch_servers(const affinityd::host::Root& root, std::chrono::milliseconds time);

struct ReadServers {
    survey::SeenServers seen;       ///< refers to the machine that it was read of
    std::vector<std::string> notes; ///< for people: parts that are not known
};
using IsMeant = std::function<bool(const survey::Server&)>;

/// `taken`: names of policies. Servers that are not meant are left out.
[[nodiscard]] ReadServers read_servers(StillMachine& still, const affinityd::host::Root& root,
                                       Watched watched, std::set<std::string, std::less<>> taken,
                                       const IsMeant& is_meant);

} // namespace affinityctl
