// SPDX-License-Identifier: Apache-2.0
#include "app/world_loader.hpp"

#include "host/ownership.hpp"
#include "policy/folders.hpp"

#include <utility>

namespace affinityd::app {

/// Each folder that is not to be trusted has a line of its own. Of files it is a fault of theirs.
Result<std::vector<policy::Document>> WorldLoader::read() const {
    const bool is_checked = by_whom_ == Owners::trusted;
    std::string refused;
    for (const auto& folder : folders_)
        if (const auto checked = host::check_ownership(folder); is_checked && !checked)
            refused += checked.error().to_string() + "\n";
    // What is in such a folder is not even opened.
    if (!refused.empty()) return fail("policies that others can change are refused\n" + refused);
    auto documents = policy::read_folders(folders_);
    if (!documents || !is_checked) return documents;
    for (auto& document : *documents) {
        auto checked = host::check_ownership(document.path);
        if (checked) continue;
        if (checked.error().subject == document.path) checked.error().subject.clear();
        document = {document.path, {}, checked.error().to_string()};
    }
    return documents;
}

bool WorldLoader::step(const OutOfTime& out_of_time) {
    if (!reading_) {
        auto documents = read();
        if (!documents) {
            result_ = std::unexpected(documents.error());
            return true;
        }
        reading_.emplace(std::move(*documents));
    }
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
    loaded.world =
        std::make_shared<World>(std::move(loaded.found.set), std::move(machine_), std::move(usage_));
    return loaded;
}

} // namespace affinityd::app
