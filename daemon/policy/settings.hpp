// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "policy/diagnostic.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::policy {

/// The daemon's settings, by the command line and affinityd.yaml(5).
struct Settings {
    std::vector<std::string> policy_folders; ///< lowest precedence first
    std::string config;                      ///< path of affinityd.yaml, "" for none
    std::string runtime_dir = "/run/affinityd";
    std::string state_dir = "/var/lib/affinityd";
    std::string irqbalance_dir = "/run/irqbalance"; ///< where its sockets are
    bool dry_run = false;
    bool trust_policies = false;                 ///< their folders may belong to others
    std::chrono::seconds reconcile_interval{60}; ///< 1 s to 1 day
    std::chrono::seconds redeal_interval{60};    ///< 10 s to 1 day; 0: tasks keep the slots they have
    std::chrono::seconds auto_round{10};         ///< of `affinity: auto`, 1 s to 10 min
    struct Measure {
        std::chrono::seconds interval{86400}; ///< 0: only on demand
        std::chrono::seconds duration{2};     ///< of one run, 1 s to 60 s
        std::string target;                   ///< "host:port" of a ttcp sink; "": loopback
        /// Up to so much is added to each interval, so that many machines do not measure at once.
        std::chrono::seconds random_delay{0};
        std::uint64_t bytes = 0;  ///< the most that one run sends; 0: as much as its time allows
        bool idle_only = true;    ///< a run on a busy machine or over a busy NIC is skipped
        unsigned busy_above = 20; ///< percent of all CPU time, or of the NIC's speed, 1 to 100
        friend bool operator==(const Measure&, const Measure&) = default;
    } measure;
};

/// Where the settings are by default.
inline constexpr const char* standard_settings = "/etc/affinityd/affinityd.yaml";

/// Every fault of an affinityd.yaml(5), in the order of the file. Without any, `read` gets what it says.
[[nodiscard]] std::vector<Diagnostic> check_settings(const std::string& path, std::string_view text,
                                                     Settings* read = nullptr);

/// Reads affinityd.yaml(5) into `settings`; what the file does not say keeps its value. An Error has
/// file:line:column of the first fault as its subject; `settings` is unchanged then.
[[nodiscard]] Result<void> read_settings(const std::string& path, std::string_view text, Settings& settings);

} // namespace affinityd::policy
