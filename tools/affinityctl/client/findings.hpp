// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

/// A status, or a part of one, with a verdict: `health` ("ok", "settling" or "attention"), and in `problems`
/// everything that is not as the policies want it, the gravest first, each with `severity` ("attention",
/// "settling" or "acknowledged", which has an end, `until`), `kind`, `policy`, `subject`, `name`, `message`,
/// `hint` and `since` (null: not known). The screen, the JSON and the exit status are made of this one value.
[[nodiscard]] nlohmann::json judged(nlohmann::json status);

/// True if an administrator should act.
[[nodiscard]] bool needs_attention(const nlohmann::json& judged);

/// "policy web, eth0: it has no queue that could be placed".
[[nodiscard]] std::string sentence_of(const nlohmann::json& problem);

/// Threads and queues that can never be where they should be, as problems: nothing mends that.
[[nodiscard]] std::vector<nlohmann::json> immovables_in(const nlohmann::json& status);

/// How many threads and queues a dry run would change: "3 threads and 1 queue"; "": none.
[[nodiscard]] std::string would_change(const nlohmann::json& status);

/// True for the state of a thread or queue that should be elsewhere.
[[nodiscard]] bool is_out_of_place(const nlohmann::json& thread_or_queue);

} // namespace affinityctl
