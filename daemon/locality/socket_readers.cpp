// SPDX-License-Identifier: Apache-2.0
#include "locality/socket_readers.hpp"

#include "inventory/numbered.hpp"
#include "inventory/patient_read.hpp"
#include "inventory/polled_files.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace affinityd::locality {

namespace {

constexpr std::size_t most_threads = 512, most_known = 65536;
constexpr std::size_t longest_fdinfo = 16U << 20, long_fdinfo = 256U << 10; // bytes; some 3,000 files
constexpr std::chrono::minutes rest_of_long{10};

} // namespace

void SocketReaders::note_targets(int epoll, int tid) {
    const auto text =
        inventory::read_patiently(*root_, pid_, {"fdinfo/" + std::to_string(epoll)}, longest_fdinfo).front();
    if (!text) return;
    if (text->size() > long_fdinfo) next_ = Clock::now() + rest_of_long;
    for (const auto& file : inventory::parse_polled(*text))
        if (readers_.size() < most_known) readers_[file.number] = tid;
}

std::vector<int> SocketReaders::threads() const {
    std::vector<int> tids;
    auto entries = inventory::NumberedEntries::open(root_->proc(), std::to_string(pid_) + "/task");
    if (!entries) return tids;
    while (tids.size() < most_threads) {
        const auto tid = entries->next();
        if (!tid || !*tid) break;
        tids.push_back(**tid);
    }
    return tids;
}

void SocketReaders::look(const GoesOn& goes_on) {
    const auto tids = threads();
    is_single_ = tids.size() < 2;
    if (is_single_) return readers_.clear();
    std::erase_if(readers_,
                  [&](const auto& one) { return std::ranges::find(tids, one.second) == tids.end(); });
    using Kind = inventory::WaitingCall::Kind;
    std::map<int, int> epolls; // with a thread that waits there
    std::vector<std::string> names;
    for (const int tid : tids)
        names.push_back("task/" + std::to_string(tid) + "/syscall");
    if (!goes_on()) return;
    const auto calls = inventory::read_patiently(*root_, pid_, std::move(names), 256);
    for (std::size_t i = 0; i < tids.size(); ++i) {
        const auto call = inventory::parse_waiting(calls[i].value_or(""));
        if (!call) continue;
        if (call->kind == Kind::epoll) epolls[call->number] = tids[i];
        if (call->kind == Kind::read) readers_[call->number] = tids[i];
    }
    if (Clock::now() < next_) return;
    for (const auto& [epoll, tid] : epolls) {
        if (!goes_on()) return;
        note_targets(epoll, tid);
    }
}

std::optional<int> SocketReaders::reader_of(int descriptor) const {
    if (is_single_) return pid_;
    const auto found = readers_.find(descriptor);
    return found == readers_.end() ? std::nullopt : std::optional(found->second);
}

} // namespace affinityd::locality
