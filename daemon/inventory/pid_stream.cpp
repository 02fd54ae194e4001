// SPDX-License-Identifier: Apache-2.0
#include "inventory/pid_stream.hpp"

#include "inventory/numbered.hpp"

#include <algorithm>
#include <cerrno>

#include <libproc2/pids.h>

namespace affinityd::inventory {

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
