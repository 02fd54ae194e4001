// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace affinityd::host {

/// Which users are one person: a user who has a range of subordinate user ids, for user namespaces, may run
/// processes under thousands of them. Source: subuid(5).
class SubordinateIds {
  public:
    /// The file need not exist. Looked for again when users are asked for, every ten seconds at most.
    explicit SubordinateIds(std::string path = "/etc/subuid") : path_(std::move(path)) {}
    /// The first id of the range that has this one; the id itself if none has it.
    [[nodiscard]] uid_t person(uid_t user);

  private:
    struct Range {
        uid_t first = 0;
        std::uint32_t count = 0;
    };
    void refresh();
    void parse(std::string_view text);
    std::string path_;
    std::vector<Range> ranges_; ///< by first id
    std::chrono::steady_clock::time_point next_read_{};
};

} // namespace affinityd::host
