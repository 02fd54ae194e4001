// SPDX-License-Identifier: Apache-2.0
#include "inventory/descriptors.hpp"

#include "base/text.hpp"
#include "host/fd.hpp"
#include "inventory/process_files.hpp"
#include "inventory/task.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <libproc2/pids.h>
#include <unistd.h>

namespace affinityd::inventory {

Result<NumberedEntries> NumberedEntries::open(const host::Dir& parent, const std::string& path) {
    auto dir = parent.dir(path);
    if (!dir) return std::unexpected(dir.error());
    host::Fd same(::fcntl(dir->fd(), F_DUPFD_CLOEXEC, 0));
    NumberedEntries entries;
    entries.stream_.reset(same ? ::fdopendir(same.get()) : nullptr);
    if (!entries.stream_) return fail("cannot list numbered entries", path, errno);
    static_cast<void>(same.release()); // the stream's from here on
    entries.dir_ = std::move(*dir);
    return entries;
}

Result<std::optional<int>> NumberedEntries::next() {
    errno = 0; // the end and a fault are told apart by errno alone; readdir(3)
    while (const dirent* entry = stream_ ? ::readdir(stream_.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (!is_digit(name.front()) || (name.front() == '0' && name != "0")) continue;
        if (const auto number = parse_number<int>(name)) return number;
    }
    if (errno != 0 && !host::means_absent(errno)) return fail("cannot list numbered entries", {}, errno);
    return std::nullopt;
}

std::string descriptor_target(const host::Dir& descriptors, int number) {
    std::array<char, 64> target{}; // no socket has a longer one
    const auto length =
        ::readlinkat(descriptors.fd(), std::to_string(number).c_str(), target.data(), target.size());
    return {target.data(), static_cast<std::size_t>(std::max<ssize_t>(0, length))};
}

std::optional<std::uint64_t> inode_of_socket(std::string_view name) {
    constexpr std::string_view head = "socket:[";
    if (!name.starts_with(head) || !name.ends_with("]")) return std::nullopt;
    return parse_number<std::uint64_t>(name.substr(head.size(), name.size() - head.size() - 1));
}

std::optional<std::uint64_t> socket_inode(const host::Dir& descriptors, int number) {
    return inode_of_socket(descriptor_target(descriptors, number));
}

Result<std::vector<std::uint64_t>> socket_inodes(const host::Dir& process, std::size_t most) {
    auto entries = NumberedEntries::open(process, "fd");
    if (!entries) return std::unexpected(entries.error());
    std::vector<std::uint64_t> inodes;
    for (std::size_t looked = 0; looked < most; ++looked) {
        const auto number = entries->next();
        if (!number) return std::unexpected(number.error());
        if (!*number) break;
        if (const auto inode = socket_inode(entries->dir(), **number)) inodes.push_back(*inode);
    }
    sort_unique(inodes);
    return inodes;
}

Result<NumberedEntries> NumberedEntries::open(const host::Root& root) {
    auto entries = open(root.proc(), "");
    if (entries || root.is_live() || !host::means_absent(entries.error().code)) return entries;
    return NumberedEntries();
}

namespace {

Result<std::vector<int>> list_all(const host::Root& root) {
    auto entries = NumberedEntries::open(root);
    if (!entries) return std::unexpected(entries.error());
    std::vector<int> pids;
    while (true) {
        const auto pid = entries->next();
        if (!pid) return std::unexpected(pid.error());
        if (!*pid) break;
        if (**pid != 0) pids.push_back(**pid); // the kernel makes no such folder
    }
    std::ranges::sort(pids);
    return pids;
}

Result<std::vector<int>> list_live_pids() {
    pids_item item = PIDS_ID_PID;
    pids_info* info = nullptr;
    if (const int code = procps_pids_new(&info, &item, 1); code < 0)
        return fail("cannot list the processes", {}, -code);
    std::vector<int> pids;
    errno = 0; // the library answers the end and a /proc that cannot be opened with the same null
    while (const pids_stack* stack = procps_pids_get(info, PIDS_FETCH_TASKS_ONLY))
        pids.push_back(PIDS_VAL(0, s_int, stack, info));
    const int code = errno;
    procps_pids_unref(&info);
    if (pids.empty()) return fail("cannot list the processes", {}, code);
    std::ranges::sort(pids);
    return pids;
}

} // namespace

Result<std::vector<int>> list_pids(const host::Root& root) {
    return root.is_live() ? list_live_pids() : list_all(root);
}

KernelThreadScan::KernelThreadScan(const host::Root& root, std::span<const KernelThread> known)
    : root_(&root) {
    for (const auto& thread : known)
        pids_.push_back(thread.id.tid);
}

Result<void> KernelThreadScan::list() {
    is_listed_ = true;
    const auto text = root_->proc().text("2/task/2/children");
    if (text && !text->empty()) {
        for (const auto word : split_words(*text))
            if (const auto pid = parse_number<int>(word)) pids_.push_back(*pid);
        sort_unique(pids_);
        return {};
    }
    auto all = list_all(*root_);
    if (!all) return std::unexpected(all.error());
    pids_ = std::move(*all);
    return {};
}

Result<void> KernelThreadScan::look_at(int pid) {
    StatBuffer buffer;
    const auto read = read_stat(root_->proc(), std::to_string(pid) + "/stat", buffer);
    if (!read) return std::unexpected(read.error());
    const auto& line = *read;
    // Any program may have the name napi/eth0-1; the flag is the kernel's.
    if (!line || line->id != pid || line->is_dead() || (line->flags & pf_kthread) == 0) return {};
    auto comm = unescape_comm(line->comm);
    if (comm.starts_with("napi/") || comm.starts_with("irq/"))
        found_.push_back({{pid, line->start_time}, std::move(comm)});
    return {};
}

bool KernelThreadScan::step(const std::function<bool()>& out_of_time) {
    auto done = is_listed_ ? Result<void>() : list();
    while (done && !pids_.empty()) {
        const int pid = pids_.back();
        pids_.pop_back();
        done = look_at(pid);
        if (done && out_of_time()) return false;
    }
    if (!done) fault_ = done.error();
    return true;
}

Result<std::vector<KernelThread>> KernelThreadScan::take() {
    if (fault_) return std::unexpected(*fault_);
    std::ranges::sort(found_, {}, &KernelThread::id);
    return std::move(found_);
}

} // namespace affinityd::inventory
