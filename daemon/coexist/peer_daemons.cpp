// SPDX-License-Identifier: Apache-2.0
#include "app/neighbours.hpp"

#include "base/text.hpp"
#include "host/file.hpp"
#include "host/root.hpp"
#include "state/journal.hpp"

#include <set>

namespace affinityd::app {

namespace {

constexpr std::string_view socket_name = "/control";
constexpr std::size_t most_neighbours = 16; // anybody can make sockets of that name

/// Folders in which somebody listens at a socket named as ours.
std::set<std::string> folders(const host::Root& root) {
    std::set<std::string> found;
    const auto table = root.proc().read("net/unix");
    if (!table || !*table) return found;
    for (auto line : split(**table, '\n')) {
        const auto path = line.find('/');
        if (path == std::string_view::npos || !line.ends_with(socket_name)) continue;
        line.remove_prefix(path);
        line.remove_suffix(socket_name.size());
        found.emplace(line);
        if (found.size() >= most_neighbours) break;
    }
    return found;
}

} // namespace

std::vector<Neighbour> find_neighbours(const host::Root& root, const std::string& runtime_dir,
                                       const state::Journal& journal) {
    std::vector<Neighbour> neighbours;
    for (const auto& folder : folders(root)) {
        const std::string path = folder + "/undo.journal";
        if (host::is_same_file(folder, runtime_dir) || !host::is_trusted(path)) continue;
        const auto theirs = state::Journal::read(path);
        if (!theirs) continue; // gone meanwhile
        Neighbour neighbour{folder, {}};
        for (const auto& entry : theirs->entries())
            if (journal.find(entry.subject) != nullptr) neighbour.shared.push_back(entry.subject);
        if (!neighbour.shared.empty()) neighbours.push_back(std::move(neighbour));
    }
    return neighbours;
}

} // namespace affinityd::app
