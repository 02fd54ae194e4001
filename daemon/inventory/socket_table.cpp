// SPDX-License-Identifier: Apache-2.0
#include "inventory/socket_table.hpp"

#include "inventory/net_files.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace affinityd::inventory {

namespace {

constexpr std::size_t chain_count = 1U << 16;
constexpr std::size_t table_file_limit = 64U << 20;
// For the kernel's next answer, before the caller is asked whether there is time for more.
constexpr std::chrono::microseconds patience{100};

} // namespace

/// Where the reading is.
struct SocketTable::Reading {
    const host::Root* root;
    Wanted wanted;
    std::size_t list = 0;                 ///< of net_files
    std::size_t start = 0;                ///< size of the table before this list
    int attempts = 0;                     ///< at this list
    std::unique_ptr<BackgroundDump> dump; ///< of this list; none yet, or files are read

    void next_list(std::size_t size) {
        ++list;
        start = size;
        attempts = 0;
        dump.reset();
    }
};

SocketTable::SocketTable(const host::Root& root, Wanted wanted, std::size_t most)
    : chains_(chain_count), most_(most), reading_(std::make_unique<Reading>(Reading{&root, wanted})) {}
SocketTable::SocketTable(SocketTable&&) noexcept = default;
SocketTable& SocketTable::operator=(SocketTable&&) noexcept = default;
SocketTable::~SocketTable() = default;

std::uint32_t& SocketTable::chain(std::uint64_t inode) { return chains_[inode % chain_count]; }

void SocketTable::add(const LocalSocket& socket) {
    if (socket.inode == 0 || socket.state == SocketState::other) return;
    if (reading_->wanted == Wanted::listeners && !socket.listens()) return;
    if (entries_.size() >= most_) {
        is_truncated_ = true;
        return;
    }
    auto& first = chain(socket.inode);
    entries_.push_back({socket, first});
    first = static_cast<std::uint32_t>(entries_.size());
}

void SocketTable::shrink(std::size_t size) {
    while (entries_.size() > size) {
        chain(entries_.back().socket.inode) =
            entries_.back().next; // the last added is the first of its chain
        entries_.pop_back();
    }
}

const LocalSocket* SocketTable::find(std::uint64_t inode) const {
    if (inode == 0) return nullptr;
    for (auto place = chains_[inode % chain_count]; place != 0; place = entries_[place - 1].next)
        if (entries_[place - 1].socket.inode == inode) return &entries_[place - 1].socket;
    return nullptr;
}

void SocketTable::for_each(const std::function<void(const LocalSocket&)>& use) const {
    for (const auto& entry : entries_)
        use(entry.socket);
}

bool SocketTable::step(const std::function<bool()>& out_of_time) {
    while (reading_) {
        if (auto done = read_some(); !done) {
            fault_ = done.error();
            reading_.reset();
        } else if (reading_->list == net_files.size() || is_truncated_) {
            reading_.reset();
        }
        if (reading_ && out_of_time()) return false;
    }
    return true;
}

Result<void> SocketTable::read_some() {
    auto& now = *reading_;
    const auto& file = net_files.at(now.list);
    const auto take = [this](const LocalSocket& socket) { add(socket); };
    const auto read_file = [&]() -> Result<void> {
        auto read = read_net_file(*now.root, "", file, table_file_limit, take);
        now.next_list(entries_.size());
        if (!read) return std::unexpected(read.error());
        return {};
    };
    if (!now.root->is_live()) return read_file();
    if (!now.dump) now.dump = std::make_unique<BackgroundDump>(file.protocol, file.family, now.wanted);
    const auto part = now.dump->take(patience);
    if (!part) return {};
    if (!part->step) return std::unexpected(part->step.error());
    std::ranges::for_each(part->sockets, take);
    switch (*part->step) {
    case SocketDump::Step::more:
        break;
    case SocketDump::Step::end:
        now.next_list(entries_.size());
        break;
    case SocketDump::Step::interrupted:
        if (++now.attempts == host::most_attempts)
            return fail("the list of sockets changed in every attempt to read it", file.name, EAGAIN);
        shrink(now.start);
        is_truncated_ = false;
        now.dump.reset();
        break;
    case SocketDump::Step::refused:
        shrink(now.start);
        return read_file();
    }
    return {};
}

Result<SocketTable> read_socket_table(const host::Root& root, Wanted wanted, std::size_t most) {
    SocketTable table(root, wanted, most);
    table.step([] { return false; });
    if (table.fault()) return std::unexpected(*table.fault());
    return table;
}

} // namespace affinityd::inventory
