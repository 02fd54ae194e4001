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

struct PidStream::Source {
    std::unique_ptr<pids_info, Unref> proc2;
    std::optional<NumberedEntries> entries; ///< used without proc2; no value: a recording without processes
};

Result<PidStream> PidStream::open(const host::Root& root) {
    auto source = std::make_unique<Source>();
    if (root.is_live()) source->proc2 = open_proc2();
    if (!source->proc2) {
        auto entries = NumberedEntries::open(root.proc(), "");
        if (entries)
            source->entries = std::move(*entries);
        else if (root.is_live() || !host::means_absent(entries.error().code))
            return std::unexpected(entries.error());
    }
    return PidStream(std::move(source));
}

PidStream::PidStream(std::unique_ptr<Source> source) : source_(std::move(source)) {}
PidStream::PidStream(PidStream&&) noexcept = default;
PidStream& PidStream::operator=(PidStream&&) noexcept = default;
PidStream::~PidStream() = default;

Result<std::optional<int>> PidStream::next() {
    if (source_->proc2) {
        errno = 0; // the library answers the end and a /proc that cannot be opened with the same null
        const pids_stack* stack = procps_pids_get(source_->proc2.get(), PIDS_FETCH_TASKS_ONLY);
        if (stack != nullptr) return PIDS_VAL(0, s_int, stack, source_->proc2.get());
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EACCES)
            return fail("cannot list the processes", {}, errno);
        return std::nullopt;
    }
    while (source_->entries) {
        auto pid = source_->entries->next();
        if (!pid || (*pid && **pid > 0)) return pid;
        if (!*pid) source_->entries.reset();
    }
    return std::nullopt;
}

Result<std::vector<int>> list_pids(const host::Root& root) {
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
