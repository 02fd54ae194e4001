// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state/journal.hpp"

#include <filesystem>
#include <string>

namespace affinityd::test {

/// What a daemon that starts now would read, while another journal has the file open.
inline state::Journal read_journal(const std::string& path) {
    const std::string copy = path + ".copy";
    std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
    return *state::Journal::open(copy);
}

} // namespace affinityd::test
