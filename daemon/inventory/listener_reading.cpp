// SPDX-License-Identifier: Apache-2.0
#include "inventory/listener_reading.hpp"

#include "base/clock.hpp"
#include "inventory/net_files.hpp"
#include "inventory/socket_dump.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

namespace affinityd::inventory {

namespace {

constexpr std::size_t net_file_limit = 4U << 20; // some 30,000 sockets: the time for a file has no limit
constexpr std::size_t most_crowded = 4;          // the others need not be named

bool holds(const PortRanges& ports, std::uint16_t port) {
    const auto after = std::ranges::upper_bound(ports, port, {}, &PortRanges::value_type::first);
    return after != ports.begin() && port <= std::prev(after)->second;
}

/// What is found, table after table.
class Collection {
  public:
    Collection(const PortRanges& ports, const ListenerLimits& limits, host::SubordinateIds& persons)
        : ports_(few_ranges(ports, ports.size())), limits_(limits), persons_(persons) {}

    void begin_table() { before_table_ = {found_.sockets.size(), of_users_}; }
    /// What came of this table counts not.
    void begin_again() {
        found_.sockets.resize(before_table_.size);
        of_users_ = before_table_.of_users;
    }
    void take(const LocalSocket& socket);
    [[nodiscard]] bool is_full() const { return found_.sockets.size() >= limits_.in_all; }
    void leave_off(const std::string& table) { found_.unread.push_back({table, largest_user()}); }
    [[nodiscard]] Listeners finish(const Listeners* before);

  private:
    using Counts = std::unordered_map<std::uint32_t, std::size_t>;
    [[nodiscard]] std::uint32_t person(std::uint32_t user);
    [[nodiscard]] std::uint32_t largest_user() const;
    void carry_over(const Listeners& before);

    PortRanges ports_; ///< apart from each other, as holds() needs them
    const ListenerLimits& limits_;
    host::SubordinateIds& persons_;
    std::optional<std::pair<std::uint32_t, std::uint32_t>> last_person_; ///< a user and who it is
    Listeners found_;
    Counts of_users_; ///< sockets that were seen
    struct {
        std::size_t size = 0;
        Counts of_users;
    } before_table_;
};

std::uint32_t Collection::person(std::uint32_t user) {
    if (!last_person_ || last_person_->first != user) last_person_ = {user, persons_.person(user)};
    return last_person_->second;
}

void Collection::take(const LocalSocket& socket) {
    if (socket.inode == 0 || !socket.listens() || !holds(ports_, socket.port)) return;
    const auto user = person(socket.user);
    if (++of_users_[user] > limits_.of_user && user != 0) return;
    if (!is_full()) found_.sockets.push_back({socket.inode, user, socket.port});
}

std::uint32_t Collection::largest_user() const {
    const auto most = std::ranges::max_element(of_users_, {}, &Counts::value_type::second);
    return most == of_users_.end() ? 0 : most->first;
}

Listeners Collection::finish(const Listeners* before) {
    for (const auto& [user, count] : of_users_)
        if (user != 0 && count > limits_.of_user) found_.crowded.push_back(user);
    std::ranges::sort(found_.crowded);
    found_.crowded.resize(std::min(found_.crowded.size(), most_crowded));
    std::ranges::sort(found_.sockets);
    if (before != nullptr && !found_.are_all()) carry_over(*before);
    return std::move(found_);
}

/// As many again at most, so that those who listen now take nobody's place.
void Collection::carry_over(const Listeners& before) {
    std::vector<Listener> others;
    std::ranges::set_difference(before.sockets, found_.sockets, std::back_inserter(others), {},
                                &Listener::inode, &Listener::inode);
    std::erase_if(others, [this](const Listener& listener) {
        return !holds(ports_, listener.port) ||
               (++of_users_[listener.user] > limits_.of_user && listener.user != 0);
    });
    others.resize(std::min(others.size(), limits_.in_all));
    const auto seen = static_cast<std::ptrdiff_t>(found_.sockets.size());
    found_.sockets.insert(found_.sockets.end(), others.begin(), others.end());
    std::ranges::inplace_merge(found_.sockets, found_.sockets.begin() + seen);
}

/// One attempt. No value: there was no time or room for all of it.
Result<std::optional<SocketDump::Step>> read_once(const NetFile& list, const PortRanges& ports,
                                                  std::chrono::nanoseconds until, Collection& into,
                                                  const std::function<bool()>& is_over) {
    auto dump = SocketDump::open(list.protocol, list.family, Wanted::listeners, ports);
    if (!dump) return std::unexpected(dump.error());
    while (true) {
        const auto step = dump->next([&](const LocalSocket& socket) { into.take(socket); });
        if (!step) return std::unexpected(step.error());
        if (*step != SocketDump::Step::more) return *step;
        if (is_over()) return fail("the reading is over", list.name, ECANCELED);
        if (into.is_full() || thread_time() >= until) return std::nullopt;
    }
}

} // namespace

Result<Listeners> ListenerReader::read(const PortRanges& ports, const Listeners* before,
                                       const std::function<bool()>& is_over) {
    Collection found(ports, limits_, persons_);
    for (const auto& list : net_files) {
        const std::string table = std::string(list.name).substr(sizeof "net/" - 1);
        const auto until = thread_time() + limits_.cpu_time; // for all attempts
        found.begin_table();
        std::optional step = SocketDump::Step::interrupted;
        for (int i = 0; step == SocketDump::Step::interrupted; ++i) {
            if (i == host::most_attempts)
                return fail("the list of sockets changed in every attempt to read it", list.name, EAGAIN);
            found.begin_again();
            auto done = read_once(list, ports, until, found, is_over);
            if (!done) return std::unexpected(done.error());
            step = *done;
        }
        if (step == SocketDump::Step::refused) {
            found.begin_again();
            const auto take = [&](const LocalSocket& socket) { found.take(socket); };
            const auto is_all = read_net_file(root_, "", list, net_file_limit, take);
            if (!is_all) return std::unexpected(is_all.error());
            if (!*is_all) step.reset();
        }
        if (!step || found.is_full()) found.leave_off(table);
    }
    return found.finish(before);
}

} // namespace affinityd::inventory
