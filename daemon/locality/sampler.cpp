// SPDX-License-Identifier: Apache-2.0
#include "locality/sampler.hpp"

#include "host/avoided.hpp"
#include "host/patient_call.hpp"
#include "inventory/descriptor_walk.hpp"
#include "inventory/name_space.hpp"
#include "inventory/numbered.hpp"
#include "inventory/process_scan.hpp"
#include "inventory/run_record.hpp"

#include <algorithm>
#include <cerrno>
#include <expected>
#include <optional>
#include <thread>
#include <utility>

namespace affinityd::locality {

namespace {

constexpr std::size_t most_descriptors = 65536; // of a process, among which sockets are looked for
constexpr std::size_t tries_per_socket = 16;
constexpr std::chrono::milliseconds first_period{1000};
constexpr std::chrono::milliseconds jiffy{10}; // the kernel's clock of silence has such steps

/// Ascending from `first`, then the lower ones.
std::vector<int> descriptors_from(int first, inventory::NumberedEntries& entries) {
    std::vector<int> numbers;
    while (numbers.size() < most_descriptors) {
        const auto number = entries.next();
        if (!number || !*number) break;
        numbers.push_back(**number);
    }
    std::ranges::sort(numbers);
    std::ranges::rotate(numbers, std::ranges::lower_bound(numbers, first));
    return numbers;
}

} // namespace

/// No value: there is no such socket any more, or it is no connection.
std::optional<Sampler::Connection> Sampler::look_into(const host::ForeignFiles& files, int number,
                                                      std::uint64_t inode) {
    if (host::is_avoided(files.pid(), {host::Avoid::inode, inode})) return std::nullopt;
    using Looked = std::expected<std::optional<Connection>, int>;
    const auto looked = host::patiently<Looked>([files, number, inode](host::InUse& at) -> Looked {
        at.pid = files.pid();
        at.inode = inode; // whoever has it open
        const auto socket = files.socket(number);
        if (!socket) return std::unexpected(socket.error());
        if (!socket->begin_use(at)) return std::unexpected(EBUSY);
        const auto silence = socket->silence();
        const Connection found{silence.value_or(std::chrono::milliseconds(0)), socket->incoming_cpu(),
                               socket->napi_id()};
        files.let_owner_close_last(number, inode);
        return silence ? std::optional(found) : std::nullopt;
    });
    if (looked && *looked) return **looked;
    const int code = looked ? looked->error() : host::to_errno(looked.error());
    if (code != EBADF && code != ESRCH && code != ENOTSOCK) refused_ = code;
    return std::nullopt;
}

/// True if there was a connection to be looked at.
bool Sampler::sample(int pid, const Process& process, const host::ForeignFiles& files,
                     const host::Dir& descriptors, int number, std::chrono::milliseconds since) {
    const auto inode = inventory::socket_inode(descriptors, number);
    if (!inode) return false;
    const auto connection = look_into(files, number, *inode);
    if (!connection) return false;
    if (connection->silence > since + jiffy) return true; // an idle one would count as much as a busy one
    const auto reader = process.readers.reader_of(number);
    const auto record =
        reader ? inventory::read_run_record(*root_, pid, *reader) : std::optional<inventory::RunRecord>();
    if (!record || record->cpu < 0) {
        ++unplaced_;
        return true;
    }
    samples_.add({.pid = pid,
                  .network_space = process.network_space,
                  .napi = connection->napi,
                  .arrival = connection->arrival && possible_.contains(*connection->arrival)
                                 ? connection->arrival
                                 : std::nullopt, // somebody has set it
                  .reader = static_cast<unsigned>(record->cpu),
                  .thread = *reader});
    return true;
}

bool Sampler::is_present(int pid, Process& process) {
    const auto scan = inventory::ProcessScan::open(*root_, pid).value_or(std::nullopt);
    if (!scan || scan->is_kernel()) return false;
    const auto start = scan->id().start_time;
    if (process.start_time != start) {
        const bool is_reused = process.start_time != 0;
        process = Process(*root_, pid);
        if (is_reused) samples_.forget([&](int other) { return other == pid; });
        process.start_time = start;
        process.network_space = inventory::name_space(*root_, std::to_string(pid), "net");
    }
    names_[pid] = scan->comm();
    return true;
}

/// How many sockets it has looked at.
std::size_t Sampler::look_at(int pid, std::size_t most, const GoesOn& goes_on) {
    auto& process = processes_.try_emplace(pid, *root_, pid).first->second;
    if (!is_present(pid, process) || process.is_refused) return 0;
    const auto now = Clock::now();
    const auto since = process.last == Clock::time_point{}
                           ? first_period
                           : std::chrono::duration_cast<std::chrono::milliseconds>(now - process.last);
    process.last = now;
    refused_ = 0;
    const auto looked = look_through(pid, process, {most, since}, goes_on);
    if (refused_ != 0) last_refused_ = refused_;
    process.is_refused = refused_ == EPERM || refused_ == EACCES || refused_ == ENOSYS;
    return looked;
}

std::size_t Sampler::look_through(int pid, Process& process, const Bounds& bounds, const GoesOn& goes_on) {
    auto entries = inventory::NumberedEntries::open(root_->proc(), std::to_string(pid) + "/fd");
    const auto files = host::ForeignFiles::open(pid);
    if (!files && files.error() != ESRCH) refused_ = files.error();
    if (!files || !entries) return 0;
    process.readers.look(goes_on);
    std::size_t looked = 0;
    int last = -1;
    std::size_t left = tries_per_socket * bounds.most; // of very many files few may be connections
    for (const int number : descriptors_from(process.next, *entries)) {
        if (looked == bounds.most || left-- == 0 || refused_ != 0 || !goes_on()) break;
        process.next = number + 1;
        last = number;
        if (sample(pid, process, *files, entries->dir(), number, bounds.since)) ++looked;
    }
    if (looked == 0 && refused_ == 0 && last >= 0) refused_ = inventory::why_no_link(entries->dir(), last);
    return looked;
}

void Sampler::look(std::span<const int> pids, std::size_t most, const GoesOn& goes_on, std::size_t first) {
    for (std::size_t i = 0; i < pids.size() && most > 0 && goes_on(); ++i) {
        const auto left = pids.size() - i;
        const auto share = std::max<std::size_t>(1, most / left); // what others did not need counts on
        most -= look_at(pids[(first + i) % pids.size()], share, goes_on);
    }
}

void Sampler::take(ReadCounts& into) {
    auto found = std::exchange(samples_, {}).counts(names_);
    into.counts.insert(into.counts.end(), found.counts.begin(), found.counts.end());
    for (auto& [pid, name] : found.names)
        into.names[pid] = std::move(name);
}

void Sampler::keep_only(std::span<const int> pids) {
    const auto is_gone = [&](const auto& entry) { return !std::ranges::binary_search(pids, entry.first); };
    std::erase_if(processes_, is_gone);
    std::erase_if(names_, is_gone);
}

} // namespace affinityd::locality
