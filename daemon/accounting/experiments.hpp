// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace affinityd::accounting {

/// One experiment as the measurement history has it.
struct Experiment {
    std::string kind;      ///< "models", "latency", "sharing", "smt" or "cache"
    std::string summary;   ///< one line that says what was found, for tables; at most 4 KiB
    std::string subject;   ///< what it was measured on, as "CPUs 0-15"; may be empty
    double seconds = 0;    ///< how long it took
    std::string detail;    ///< all of it, as JSON, at most most_experiment_detail bytes
    std::int64_t time = 0; ///< when it ended, seconds since 1970 (UTC); keep_experiment sets it
};

inline constexpr std::size_t most_experiment_detail = 4U << 20; ///< as state::most_detail

/// Keeps a finished experiment in the history of `state_dir`, beside a daemon that has it open. An Error: it
/// cannot be written, the detail is too long, or there is no such kind. Otherwise a remark for people: that a
/// damaged history was set aside; "" if all is well.
[[nodiscard]] Result<std::string> keep_experiment(const std::string& state_dir, const Experiment& experiment);

/// The newest experiment of a kind. No value: there is none, or no history.
[[nodiscard]] Result<std::optional<Experiment>> newest_experiment(const std::string& state_dir,
                                                                  std::string_view kind);

} // namespace affinityd::accounting
