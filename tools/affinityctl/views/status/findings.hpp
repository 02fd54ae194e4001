// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

/// Something that is not as the policies want it, and what to do.
struct Finding {
    std::string text;          ///< foreign names in it are printable
    std::string command;       ///< what mends it or tells more; "": nothing is known to
    nlohmann::json since{};    ///< when it was first so, as the daemon tells times; null: not known
    bool mends_itself = false; ///< nobody has to do anything
};

/// What the daemon's GetStatus says that is not as it should be, the gravest first; empty: all is well.
[[nodiscard]] std::vector<Finding> findings_in(const nlohmann::json& status);

/// True if an administrator should act upon one of them.
[[nodiscard]] bool needs_attention(const std::vector<Finding>& findings);

/// Threads and queues that can never be where they should be: nothing mends that.
[[nodiscard]] std::vector<Finding> immovables_in(const nlohmann::json& status);

/// True for the state of a thread or queue that should be elsewhere.
[[nodiscard]] bool is_out_of_place(const nlohmann::json& thread_or_queue);

} // namespace affinityctl
