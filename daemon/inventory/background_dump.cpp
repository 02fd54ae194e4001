// SPDX-License-Identifier: Apache-2.0
#include "inventory/background_dump.hpp"

#include "host/blocked_signals.hpp"
#include "host/priority.hpp"

#include <system_error>
#include <utility>

namespace affinityd::inventory {

namespace {

constexpr std::size_t most_parts = 32; // some hundred kilobytes

} // namespace

BackgroundDump::BackgroundDump(Protocol protocol, int family, Wanted wanted)
    : protocol_(protocol), family_(family), wanted_(wanted) {
    const host::BlockedSignals blocked;
    try {
        thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
    } catch (const std::system_error&) { // take() reads
    }
}

BackgroundDump::~BackgroundDump() = default;

BackgroundDump::Part BackgroundDump::read() {
    Part part;
    if (!dump_) {
        auto opened = SocketDump::open(protocol_, family_, wanted_);
        if (!opened) {
            part.step = std::unexpected(opened.error());
            return part;
        }
        dump_ = std::move(*opened);
    }
    part.step = dump_->next([&](const LocalSocket& socket) { part.sockets.push_back(socket); });
    return part;
}

void BackgroundDump::work(const std::stop_token& stop) {
    host::give_way();
    bool is_last = false;
    while (!is_last && !stop.stop_requested()) {
        Part part = read();
        is_last = !part.step || *part.step != SocketDump::Step::more;
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [this] { return parts_.size() < most_parts; })) return;
        parts_.push_back(std::move(part));
        changed_.notify_all();
    }
}

std::optional<BackgroundDump::Part> BackgroundDump::take(std::chrono::microseconds patience) {
    if (!thread_.joinable()) return read();
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [this] { return !parts_.empty(); })) return std::nullopt;
    Part part = std::move(parts_.front());
    parts_.pop_front();
    changed_.notify_all();
    return part;
}

} // namespace affinityd::inventory
