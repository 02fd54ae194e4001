// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace affinityd::measure {

/// A run of affinity-ttcp.
struct Request {
    std::string target; ///< "host:port" of a ttcp sink; "": loopback
    std::chrono::seconds duration{5};
    std::uint64_t bytes = 0;                ///< most that the run sends; 0: as much as its time allows
    std::optional<unsigned> skip_if_busier; ///< percent: on a busier machine or NIC the run is skipped
};

/// affinity-ttcp(1)'s options for it.
[[nodiscard]] std::vector<std::string> options_of(const Request& request);

/// Options as they go to a measuring unit: a JSON array of strings in one line, which ends with a newline.
[[nodiscard]] std::string to_line(const std::vector<std::string>& options);
/// The options of such a line. An Error: it is none.
[[nodiscard]] Result<std::vector<std::string>> from_line(std::string_view line);

/// The most time that the run may take: twice its own time, and 20 s for start, connect and report.
[[nodiscard]] std::chrono::seconds time_limit(const Request& request);

/// The affinity-ttcp that belongs to the running program: beside it, in the bin folder of the same
/// installation, or where the build puts it. PATH is never searched. No value if no such file can be run.
[[nodiscard]] std::optional<std::string> find_ttcp();
/// The same for a program in `folder`, which ends with a '/'.
[[nodiscard]] std::optional<std::string> find_ttcp(const std::string& folder);

/// Called first by a measuring program that a daemon has started as its child: from then on it dies with
/// `parent` (PR_SET_PDEATHSIG of prctl(2)), is at nice 10, may run on any CPU, has the user nobody if it was
/// root, and no way to new privileges. False if it must not go on: the parent is gone, or the privileges
/// could not be given up. The program does so, and no fork of the daemon: a fork copies the page tables, and
/// costs the daemon's loop milliseconds.
[[nodiscard]] bool lower_self(pid_t parent);

/// Every CPU that can exist: what a child must be given so that a daemon that was pinned does not pass that
/// on.
[[nodiscard]] CpuSet everywhere();

} // namespace affinityd::measure
