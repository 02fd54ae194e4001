// SPDX-License-Identifier: Apache-2.0
#include "state/set_aside.hpp"

#include "host/file.hpp"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>

namespace affinityd::state {

namespace {

/// A link is none of ours: what it leads to would be read, and the link replaced.
Result<std::optional<std::string>> read_own_file(const std::string& path, std::size_t largest) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
        return fail("not a regular file", path);
    return host::read_file(path, largest);
}

bool is_passing(int code) { return code == EMFILE || code == ENFILE || code == ENOMEM; }

/// Where it is now; "": it is where it was.
std::string set_aside(const std::string& path) {
    constexpr int most = 9;
    for (int i = 1; i <= most; ++i) {
        auto place = path + ".unreadable" + (i == 1 ? "" : "-" + std::to_string(i));
        if (::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, place.c_str(), RENAME_NOREPLACE) == 0) return place;
    }
    return {};
}

} // namespace

Result<Found> read_or_set_aside(const std::string& path, std::size_t largest) {
    auto text = read_own_file(path, largest);
    if (text) return Found{std::move(*text), {}};
    auto fault = std::move(text.error());
    if (is_passing(fault.code)) return std::unexpected(std::move(fault));
    const auto place = set_aside(path);
    if (place.empty()) return std::unexpected(std::move(fault));
    fault.message += "; put aside as " + place + ", what it said is not known any more";
    return Found{{}, std::move(fault)};
}

} // namespace affinityd::state
