// SPDX-License-Identifier: Apache-2.0
#include "coexist/root_process.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>

#include <unistd.h>

namespace affinityd::coexist {

bool has_only_trusted_ids(std::string_view status, unsigned own) {
    constexpr std::size_t ids = 4; // real, effective, saved set, file system
    for (const auto line : split(status, '\n')) {
        auto words = split_words(line);
        if (words.empty() || words[0] != "Uid:") continue;
        words.erase(words.begin());
        return words.size() == ids && std::ranges::all_of(words, [&](const auto word) {
                   const auto id = parse_number<unsigned>(word);
                   return id && (*id == 0 || *id == own);
               });
    }
    return false;
}

bool is_roots_process(const host::Root& root, int pid) {
    const auto status = root.proc().text(std::to_string(pid) + "/status");
    return status && has_only_trusted_ids(*status, ::geteuid());
}

std::optional<std::string> program_name(const host::Root& root, int pid) {
    constexpr std::string_view deleted = " (deleted)"; // after an upgrade
    auto path = root.proc().link(std::to_string(pid) + "/exe");
    if (!path) return std::nullopt;
    if (path->ends_with(deleted)) path->resize(path->size() - deleted.size());
    return path->substr(path->rfind('/') + 1);
}

} // namespace affinityd::coexist
