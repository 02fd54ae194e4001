// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/locality/socket_samples.hpp"

#include "affinityctl/locality/foreign_socket.hpp"
#include "affinityctl/locality/name_space.hpp"
#include "affinityctl/values/counted.hpp"
#include "inventory/descriptor_walk.hpp"
#include "inventory/numbered.hpp"
#include "inventory/process_scan.hpp"
#include "inventory/run_record.hpp"

#include <cerrno>
#include <cstring>

#include <sys/syscall.h>
#include <unistd.h>

namespace affinityctl {

namespace inventory = affinityd::inventory;
namespace host = affinityd::host;
using Clock = std::chrono::steady_clock;

namespace {
constexpr std::size_t most_descriptors = 65536; // that are looked through for sockets
}

std::vector<int> SocketSamples::sockets_of(int pid) const {
    std::vector<int> sockets;
    auto entries = inventory::NumberedEntries::open(root_->proc(), std::to_string(pid) + "/fd");
    if (!entries) return sockets;
    for (std::size_t looked = 0; looked < most_descriptors; ++looked) {
        const auto number = entries->next();
        if (!number || !*number) break;
        if (inventory::socket_inode(entries->dir(), **number)) sockets.push_back(**number);
    }
    return sockets;
}

void SocketSamples::sample(int pid, const Process& process, const host::Fd& handle, int descriptor,
                           std::chrono::milliseconds since) {
    const auto reader = process.readers.reader_of(descriptor);
    std::optional<unsigned> arrival;
    unsigned napi = 0;
    {
        const auto socket = ForeignSocket::open(handle, descriptor);
        if (!socket) {
            const int code = socket.error().code;
            if (code != EBADF && code != ESRCH && code != ENOTSOCK) refused_ = code;
            return;
        }
        const auto silence = socket->silence();
        if (!silence || *silence > since) return; // an idle one would count as much as a busy one
        arrival = socket->incoming_cpu();
        napi = socket->napi_id();
    } // closed here
    const auto record =
        reader ? inventory::read_run_record(*root_, pid, *reader) : std::optional<inventory::RunRecord>();
    if (!record || record->cpu < 0) {
        ++unplaced_;
        return;
    }
    constexpr auto unknown = ~std::uint64_t{0};
    ++counts_[{static_cast<std::uint64_t>(pid), process.network_space, napi, arrival ? *arrival : unknown,
               static_cast<std::uint64_t>(record->cpu)}];
}

void SocketSamples::look_at(int pid, Process& process, Clock::time_point end) {
    const auto scan = inventory::ProcessScan::open(*root_, pid).value_or(std::nullopt);
    if (!scan || scan->is_kernel()) return;
    const auto start = scan->id().start_time;
    if (process.start_time != start) {
        process = Process(*root_, pid);
        process.start_time = start;
        process.network_space = name_space(*root_, std::to_string(pid), "net");
    }
    names_[pid] = scan->comm();
    const auto now = Clock::now();
    const auto since = process.last == Clock::time_point{}
                           ? std::chrono::milliseconds(1000)
                           : std::chrono::duration_cast<std::chrono::milliseconds>(now - process.last);
    process.last = now;
    const auto sockets = sockets_of(pid);
    if (sockets.empty()) return;
    const host::Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!handle) {
        if (errno != ESRCH) refused_ = errno;
        return;
    }
    process.readers.look();
    const auto count = std::min(sockets.size(), most_sockets);
    for (std::size_t i = 0; i < count && Clock::now() < end; ++i)
        sample(pid, process, handle, sockets[(process.next + i) % sockets.size()], since);
    process.next = (process.next + count) % sockets.size();
}

void SocketSamples::look(const std::vector<int>& pids, Clock::time_point end) {
    for (const int pid : pids) {
        if (Clock::now() >= end) return;
        look_at(pid, processes_.try_emplace(pid, *root_, pid).first->second, end);
    }
}

void SocketSamples::take(ReadCounts& seen) const {
    constexpr auto unknown = ~std::uint64_t{0};
    for (const auto& [key, samples] : counts_) {
        const auto& [pid, space, napi, arrival, reader] = key;
        seen.counts.push_back(
            {.pid = static_cast<int>(pid),
             .network_space = space,
             .napi = static_cast<unsigned>(napi),
             .arrival = arrival == unknown ? std::nullopt : std::optional(static_cast<unsigned>(arrival)),
             .reader = static_cast<unsigned>(reader),
             .reads = samples});
        seen.names[static_cast<int>(pid)] = names_.at(static_cast<int>(pid));
    }
    if (refused_ != 0)
        seen.notes.push_back(std::string("Some sockets could not be looked at: ") + std::strerror(refused_) +
                             ".");
    if (unplaced_ > 0)
        seen.notes.push_back("Of " + counted(unplaced_, "sample") +
                             " it is not known which thread reads the socket; these are left out.");
}

} // namespace affinityctl
