// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::measure {

/// One run of affinity-ttcp.
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
/// What such a line says. An Error: it is none.
[[nodiscard]] Result<std::vector<std::string>> from_line(std::string_view line);

/// What the run may take in all: twice its own time, and 20 s for start, connect and report.
[[nodiscard]] std::chrono::seconds time_limit(const Request& request);

} // namespace affinityd::measure
