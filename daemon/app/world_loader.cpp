// SPDX-License-Identifier: Apache-2.0
#include "app/world_loader.hpp"

#include "host/ownership.hpp"
#include "planner/check.hpp"
#include "policy/folders.hpp"

#include <algorithm>
#include <iterator>

namespace affinityd::app {

/// Each folder or file that is not to be trusted has a line of its own.
Result<std::vector<policy::Document>> WorldLoader::read() const {
    std::string refused;
    const auto check = [&](const std::string& path) {
        if (by_whom_ == Owners::all) return;
        const auto checked = host::check_ownership(path);
        if (!checked) refused += checked.error().to_string() + "\n";
    };
    std::ranges::for_each(folders_, check);
    // What is in such a folder is not even opened.
    auto documents = refused.empty() ? policy::read_folders(folders_) : std::vector<policy::Document>();
    if (!documents) return documents;
    for (const auto& document : *documents)
        check(document.path);
    if (!refused.empty()) return fail("policies that others can change are refused\n" + refused);
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
    while (!reading_->step())
        if (out_of_time()) return false;
    result_ = finish();
    return true;
}

Result<LoadedWorld> WorldLoader::finish() {
    auto read = reading_->take();
    auto& findings = read.diagnostics;
    std::ranges::move(planner::check_on_machine(read.set, machine_.topology, machine_.nics),
                      std::back_inserter(findings));
    policy::add_source_lines(findings, reading_->documents());
    policy::sort_by_place(findings);
    LoadedWorld loaded;
    for (const auto& finding : findings)
        loaded.diagnostics += policy::to_string(finding, true) + "\n";
    if (!read.ok()) return fail("the policies have errors\n" + loaded.diagnostics);
    loaded.world = std::make_shared<World>(std::move(read.set), std::move(machine_), std::move(usage_));
    return loaded;
}

} // namespace affinityd::app
