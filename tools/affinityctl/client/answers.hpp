// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/document.hpp"
#include "base/cpu_set.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace affinityctl {

// Fields of the daemon's answers, which are printed as they come. Their types and help are those of --json.
extern const Fields status_answer;
extern const Fields plan_answer;    ///< with what a recorded machine adds
extern const Fields explain_answer; ///< of any subject
extern const Fields history_answer;
// Their parts that have tables.
extern const Fields seat_fields, queue_fields, thread_fields, explained_thread_fields, cost_fields,
    action_fields, record_fields, candidate_fields, accept_fields, interruption_fields, figure_fields;
/// For its table, rows get "queues_held" and "queues_wanted", and "cost": the gain in words.
extern const Fields policy_fields;

/// Figures on fewer samples than these are not shown as percentages.
inline constexpr std::uint64_t fewest_samples = 20;

/// "86 % of its packets are read on the core where they arrive, 25 % would be by chance (2311 reads)"; ""
/// where too few were seen. `local`: as in a status or explanation.
[[nodiscard]] std::string local_sentence(const nlohmann::json& local);

/// "IRQ 45 eth0-rx-0", or the queue's own name.
[[nodiscard]] std::string queue_name(const nlohmann::json& queue);

/// Queues of interfaces.
struct QueueCount {
    std::size_t held = 0; ///< all that belongs to them, interrupts and steering, is in place
    std::size_t wanted = 0;
    std::map<std::string, std::size_t, std::less<>> elsewhere{}; ///< the others, by their state
    affinityd::CpuSet cpus{};                                    ///< where their interrupts go
};
/// By "policy" or "nic", from the daemon's GetStatus. Queues that another policy decides about, and those of
/// a released one, are not counted.
[[nodiscard]] std::map<std::string, QueueCount> queues_by(const nlohmann::json& status, const char* key);

/// "policies web, db: it has no queue": each sentence once, with the policies that it is about; "" is none.
[[nodiscard]] std::vector<std::string>
about_policies(const std::vector<std::pair<std::string, std::string>>& policies_and_sentences);

/// Crowded cores in one line, as a status or plan says; "" for none.
[[nodiscard]] std::string balance_line(const nlohmann::json& answer);

/// True if an administrator should act.
[[nodiscard]] bool needs_attention(const nlohmann::json& status);

/// "policy web, eth0: it has no queue that could be placed".
[[nodiscard]] std::string sentence_of(const nlohmann::json& problem);

/// Text for a machine without policies.
inline constexpr const char* no_policies =
    "There are no policies. Examples for nginx, redis and others are in /usr/share/affinityd/examples: copy "
    "one to /etc/affinityd/policies.d, and see `affinityctl check` and `affinityctl plan FILE`.";

} // namespace affinityctl
