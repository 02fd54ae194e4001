// SPDX-License-Identifier: Apache-2.0
#include "inventory/stat_file.hpp"

#include "host/scheduler.hpp"
#include "inventory/lookup.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace affinityd::inventory {

Result<std::optional<StatLine>> read_stat(const host::Dir& dir, const std::string& path, StatBuffer& buffer) {
    const auto file = dir.open_file(path, O_RDONLY | O_NONBLOCK); // a recording may hold a FIFO
    if (!file) {
        if (host::means_absent(file.error().code)) return std::nullopt;
        return std::unexpected(file.error());
    }
    ssize_t got = 0;
    do {
        got = ::read(file->get(), buffer.data(), buffer.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0 && !host::means_absent(errno) && errno != EISDIR) return fail("cannot read", path, errno);
    if (got <= 0) return std::nullopt;
    return parse_stat({buffer.data(), static_cast<std::size_t>(got)});
}

CpuSet read_mask(const host::Root& root, int pid, int tid) {
    if (!root.is_live()) return read_allowed(root, pid, tid).value_or(CpuSet{});
    return host::get_affinity(tid).value_or(CpuSet{});
}

Thread make_thread(const host::Root& root, int pid, const StatLine& line) {
    Thread thread;
    thread.id = {line.id, line.start_time};
    thread.comm = unescape_comm(line.comm);
    thread.flags = line.flags;
    thread.allowed = read_mask(root, pid, line.id);
    return thread;
}

} // namespace affinityd::inventory
