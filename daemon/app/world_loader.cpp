// SPDX-License-Identifier: Apache-2.0
#include "app/world_loader.hpp"

#include "host/ownership.hpp"
#include "policy/folders.hpp"

#include <utility>

#include <sys/stat.h>

namespace affinityd::app {

FileStamps stamps_of(const std::vector<std::string>& folders) {
    FileStamps stamps;
    const auto add = [&](const std::string& path) {
        struct stat status {};
        if (::stat(path.c_str(), &status) != 0) return;
        auto& stamp = stamps[path];
        stamp = {status.st_dev, status.st_ino};
        if (S_ISDIR(status.st_mode)) return;
        stamp[2] = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000U +
                   static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
        stamp[3] = static_cast<std::uint64_t>(status.st_size);
    };
    for (const auto& folder : folders)
        add(folder);
    if (const auto paths = policy::list_folders(folders))
        for (const auto& path : *paths)
            add(path);
    return stamps;
}

/// Each folder that is not to be trusted has a line of its own. Of files it is a fault of theirs.
Result<std::vector<std::string>> WorldLoader::list() const {
    std::string refused;
    for (const auto& folder : folders_)
        if (const auto checked = host::check_ownership(folder); by_whom_ == Owners::trusted && !checked)
            refused += checked.error().to_string() + "\n";
    // What is in such a folder is not even opened.
    if (!refused.empty()) return fail("policies that others can change are refused\n" + refused);
    return policy::list_folders(folders_);
}

std::optional<policy::Document> WorldLoader::read(const std::string& path) const {
    auto document = policy::read_document(path);
    if (!document || by_whom_ != Owners::trusted) return document;
    auto checked = host::check_ownership(path);
    if (checked) return document;
    if (policy::is_removed(path)) return std::nullopt;
    if (checked.error().subject == path) checked.error().subject.clear();
    return policy::Document{path, {}, checked.error().to_string()};
}

bool WorldLoader::read_files(const OutOfTime& out_of_time) {
    while (next_path_ < paths_->size()) {
        if (auto document = read((*paths_)[next_path_++])) {
            documents_.push_back(std::move(*document));
        } else if (listed_ < most_lists) { // others may have come, or this one is there again
            paths_.reset();
            documents_.clear();
            next_path_ = 0;
            return false;
        }
        if (out_of_time()) return false;
    }
    reading_.emplace(std::move(documents_));
    return true;
}

bool WorldLoader::step(const OutOfTime& out_of_time) {
    if (!paths_) {
        ++listed_;
        stamps_ = stamps_of(folders_);
        auto paths = list();
        if (!paths) {
            result_ = std::unexpected(paths.error());
            return true;
        }
        paths_ = std::move(*paths);
    }
    if (!reading_ && (!read_files(out_of_time) || out_of_time())) return false;
    while (!choice_) {
        if (reading_->step()) choice_.emplace(reading_->take(), reading_->documents(), last_good_);
        if (out_of_time()) return false;
    }
    while (!choice_->step(machine_))
        if (out_of_time()) return false;
    result_ = finish();
    return true;
}

LoadedWorld WorldLoader::finish() {
    LoadedWorld loaded{.world = nullptr, .found = choice_->take()};
    policy::resolve_programs(loaded.found.set);
    loaded.world =
        std::make_shared<World>(std::move(loaded.found.set), std::move(machine_), std::move(usage_));
    return loaded;
}

} // namespace affinityd::app
