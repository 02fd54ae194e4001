// SPDX-License-Identifier: Apache-2.0
#include "app/world_loader.hpp"

#include "machine/reader.hpp"
#include "planner/check.hpp"
#include "policy/folders.hpp"
#include "policy/reader.hpp"

#include <algorithm>
#include <iterator>

namespace affinityd::app {

Result<LoadedWorld> load_world(const host::Root& root, const std::vector<std::string>& folders,
                               const planner::NicUsage& usage) {
    const auto documents = policy::read_folders(folders);
    if (!documents) return std::unexpected(documents.error());
    auto machine = machine::read_machine(root);
    if (!machine) return std::unexpected(machine.error());
    auto read = policy::read_policies(*documents);
    auto& findings = read.diagnostics;
    std::ranges::move(planner::check_on_machine(read.set, machine->topology, machine->nics),
                      std::back_inserter(findings));
    policy::add_source_lines(findings, *documents);
    policy::sort_by_place(findings);
    LoadedWorld loaded;
    for (const auto& finding : findings)
        loaded.diagnostics += policy::to_string(finding, true) + "\n";
    if (!read.ok()) return fail("the policies have errors\n" + loaded.diagnostics);
    loaded.world = std::make_shared<World>(std::move(read.set), std::move(*machine), usage);
    return loaded;
}

} // namespace affinityd::app
