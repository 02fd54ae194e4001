// SPDX-License-Identifier: Apache-2.0
#include "inventory/descriptors.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <dirent.h>
#include <libproc2/pids.h>
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

std::optional<std::uint64_t> socket_inode(const host::Dir& descriptors, int number) {
    constexpr std::string_view head = "socket:[";
    std::array<char, 64> target{}; // no socket has a longer one
    const auto length =
        ::readlinkat(descriptors.fd(), std::to_string(number).c_str(), target.data(), target.size());
    const std::string_view name(target.data(), static_cast<std::size_t>(std::max<ssize_t>(0, length)));
    if (!name.starts_with(head) || !name.ends_with("]")) return std::nullopt;
    return parse_number<std::uint64_t>(name.substr(head.size(), name.size() - head.size() - 1));
}

int why_no_link(const host::Dir& descriptors, int number) {
    std::array<char, 1> text{};
    const bool may =
        ::readlinkat(descriptors.fd(), std::to_string(number).c_str(), text.data(), text.size()) >= 0;
    const int code = may ? 0 : errno;
    return code == EACCES || code == EPERM ? code : 0;
}

Result<DescriptorWalk> DescriptorWalk::open(const host::Dir& process) {
    auto entries = NumberedEntries::open(process, "fd");
    if (!entries) return std::unexpected(entries.error());
    return DescriptorWalk(std::move(*entries));
}

Result<bool> DescriptorWalk::step(std::size_t most) {
    for (std::size_t looked = 0; looked < most; ++looked) {
        const auto number = entries_.next();
        if (!number) return std::unexpected(number.error());
        if (!*number) return true;
        if (const auto inode = socket_inode(entries_.dir(), **number)) inodes_.push_back(*inode);
    }
    return false;
}

std::vector<std::uint64_t> DescriptorWalk::take_inodes() {
    std::ranges::sort(inodes_);
    const auto rest = std::ranges::unique(inodes_); // a duplicated descriptor is the same socket
    inodes_.erase(rest.begin(), rest.end());
    return std::exchange(inodes_, {});
}

namespace {

struct Unref {
    void operator()(pids_info* info) const { procps_pids_unref(&info); }
};

std::unique_ptr<pids_info, Unref> open_proc2() {
    pids_item item = PIDS_ID_PID;
    pids_info* info = nullptr;
    if (procps_pids_new(&info, &item, 1) < 0) return nullptr;
    return std::unique_ptr<pids_info, Unref>(info);
}

} // namespace

Result<PidStream> PidStream::open(const host::Root& root) {
    auto entries = NumberedEntries::open(root.proc(), "");
    if (entries) return PidStream(std::move(*entries));
    if (root.is_live() || !host::means_absent(entries.error().code)) return std::unexpected(entries.error());
    return PidStream(std::nullopt);
}

Result<std::optional<int>> PidStream::next() {
    while (entries_) {
        auto pid = entries_->next();
        if (!pid || (*pid && **pid > 0)) return pid;
        if (!*pid) entries_.reset();
    }
    return std::nullopt;
}

namespace {

/// No value: the library cannot serve.
std::optional<Result<std::vector<int>>> list_live_pids() {
    const auto info = open_proc2();
    if (!info) return std::nullopt;
    std::vector<int> pids;
    errno = 0; // the library answers the end and a /proc that cannot be opened with the same null
    while (const pids_stack* stack = procps_pids_get(info.get(), PIDS_FETCH_TASKS_ONLY))
        pids.push_back(PIDS_VAL(0, s_int, stack, info.get()));
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EACCES)
        return fail("cannot list the processes", {}, errno);
    return pids;
}

} // namespace

Result<std::vector<int>> list_pids(const host::Root& root) {
    auto listed = root.is_live() ? list_live_pids() : std::nullopt;
    if (listed) {
        if (*listed) std::ranges::sort(**listed);
        return std::move(*listed);
    }
    auto stream = PidStream::open(root);
    if (!stream) return std::unexpected(stream.error());
    std::vector<int> pids;
    while (true) {
        const auto pid = stream->next();
        if (!pid) return std::unexpected(pid.error());
        if (!*pid) break;
        pids.push_back(**pid);
    }
    std::ranges::sort(pids);
    return pids;
}

} // namespace affinityd::inventory
