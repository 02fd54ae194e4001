// SPDX-License-Identifier: Apache-2.0
#include "inventory/numbered.hpp"

#include "base/text.hpp"

#include <cerrno>
#include <cstring>

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityd::inventory {

Result<NumberedEntries> NumberedEntries::open(const host::Dir& parent, const std::string& path) {
    auto dir = parent.dir(path);
    if (!dir) return std::unexpected(dir.error());
    return NumberedEntries(std::move(*dir));
}

Result<bool> NumberedEntries::fill() {
    const long got = ::syscall(SYS_getdents64, dir_.fd(), buffer_->data(), buffer_->size());
    if (got < 0 && !host::means_absent(errno)) return fail("cannot list numbered entries", {}, errno);
    at_ = 0;
    filled_ = got > 0 ? static_cast<std::size_t>(got) : 0;
    return filled_ > 0;
}

Result<std::optional<int>> NumberedEntries::next() {
    while (true) {
        if (at_ >= filled_) {
            const auto filled = fill();
            if (!filled) return std::unexpected(filled.error());
            if (!*filled) return std::nullopt;
        }
        const char* record = buffer_->data() + at_;
        unsigned short length = 0;
        std::memcpy(&length, record + offsetof(dirent64, d_reclen), sizeof length);
        if (length == 0) return std::nullopt;
        at_ += length;
        const char* name = record + offsetof(dirent64, d_name);
        if (*name < '1' || *name > '9') {
            if (std::strcmp(name, "0") == 0) return 0; // a descriptor may have this number
            continue;
        }
        if (const auto number = parse_number<int>(name)) return number;
    }
}

void NumberedEntries::rewind() {
    ::lseek(dir_.fd(), 0, SEEK_SET);
    at_ = 0;
    filled_ = 0;
}

} // namespace affinityd::inventory
