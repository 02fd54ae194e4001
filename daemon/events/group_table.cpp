// SPDX-License-Identifier: Apache-2.0
#include "events/group_table.hpp"

namespace affinityd::events {

bool GroupTable::has_room(uid_t owner) const {
    if (groups_.size() >= most) return false;
    if (owner == 0) return true;
    const auto own = of_users_.find(owner);
    return of_all_users_ < most_of_users && (own == of_users_.end() || own->second < most_of_one_user);
}

void GroupTable::add(int watch, const std::string& path, uid_t owner) {
    erase(path);
    erase_watch(watch);
    groups_.emplace(watch, Group{path, owner});
    watches_.emplace(path, watch);
    if (owner == 0) return;
    ++of_users_[owner];
    ++of_all_users_;
}

std::optional<int> GroupTable::erase(const std::string& path) {
    const auto watch = watch_of(path);
    if (watch) erase_watch(*watch);
    return watch;
}

void GroupTable::erase_watch(int watch) {
    const auto found = groups_.find(watch);
    if (found == groups_.end()) return;
    if (const auto own = of_users_.find(found->second.owner); own != of_users_.end()) {
        --of_all_users_;
        if (--own->second == 0) of_users_.erase(own);
    }
    watches_.erase(found->second.path);
    groups_.erase(found);
}

const std::string* GroupTable::path_of(int watch) const {
    const auto found = groups_.find(watch);
    return found == groups_.end() ? nullptr : &found->second.path;
}

std::optional<int> GroupTable::watch_of(const std::string& path) const {
    const auto found = watches_.find(path);
    return found == watches_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> GroupTable::paths() const {
    std::vector<std::string> paths;
    paths.reserve(groups_.size());
    for (const auto& [watch, group] : groups_)
        paths.push_back(group.path);
    return paths;
}

} // namespace affinityd::events
