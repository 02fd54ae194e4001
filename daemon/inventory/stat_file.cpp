// SPDX-License-Identifier: Apache-2.0
#include "inventory/stat_file.hpp"

#include "host/scheduler.hpp"
#include "inventory/scan.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace affinityd::inventory {

std::optional<StatLine> read_stat(const host::Dir& dir, const std::string& path, StatBuffer& buffer) {
    const auto file = dir.open_file(path, O_RDONLY | O_NONBLOCK); // a recording may hold a FIFO
    if (!file) return std::nullopt;
    ssize_t got = 0;
    do {
        got = ::read(file->get(), buffer.data(), buffer.size());
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return std::nullopt;
    return parse_stat({buffer.data(), static_cast<std::size_t>(got)});
}

Thread make_thread(const host::Root& root, int pid, const StatLine& line) {
    Thread thread;
    thread.id = {line.id, line.start_time};
    thread.comm = unescape_comm(line.comm);
    thread.flags = line.flags;
    if (!root.is_live()) {
        thread.allowed = read_allowed(root, pid, line.id).value_or(CpuSet{});
    } else if (auto allowed = host::get_affinity(line.id)) {
        thread.allowed = std::move(*allowed);
    }
    return thread;
}

} // namespace affinityd::inventory
