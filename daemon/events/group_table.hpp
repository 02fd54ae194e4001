// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace affinityd::events {

/// Which control groups are watched. Users to whom a part of the tree is delegated make groups as they like:
/// they have a share of the places, so that those of root are watched whatever they do.
class GroupTable {
  public:
    static constexpr std::size_t most = 8192; ///< kernels limit the watches of a user
    static constexpr std::size_t most_of_users = most / 2;
    static constexpr std::size_t most_of_one_user = most / 8;

    /// `owner`: whose folder it is.
    [[nodiscard]] bool has_room(uid_t owner) const;
    /// `watch`: of inotify(7). What was known of the path or the watch is replaced.
    void add(int watch, const std::string& path, uid_t owner);
    /// Its watch; no value: it was not known.
    std::optional<int> erase(const std::string& path);
    void erase_watch(int watch);

    [[nodiscard]] const std::string* path_of(int watch) const; ///< nullptr: not known
    [[nodiscard]] std::optional<int> watch_of(const std::string& path) const;
    [[nodiscard]] std::vector<std::string> paths() const;
    [[nodiscard]] std::size_t size() const { return groups_.size(); }

  private:
    struct Group {
        std::string path;
        uid_t owner = 0;
    };
    std::unordered_map<int, Group> groups_;        ///< by watch
    std::unordered_map<std::string, int> watches_; ///< by path
    std::map<uid_t, std::size_t> of_users_;        ///< without root's
    std::size_t of_all_users_ = 0;
};

} // namespace affinityd::events
