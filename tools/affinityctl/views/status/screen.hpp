// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/age.hpp"
#include "affinityctl/views/page.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

/// What is wanted of a status.
struct StatusView {
    bool details = false;      ///< threads, queues and costs one by one
    bool out_of_place = false; ///< of threads and queues only those that should be elsewhere
    WallTime now = std::chrono::system_clock::now();
    Page page{};
};

/// A status that was judged() for a person, in this order: whether all is well, or what is wrong with the
/// command that mends it; the last reload; policies; problems; who else writes; the last measurement.
[[nodiscard]] std::string status_text(const nlohmann::json& status, const StatusView& view);

} // namespace affinityctl
