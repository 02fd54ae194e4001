// SPDX-License-Identifier: Apache-2.0
#include "inventory/accept_sockets.hpp"

#include "host/avoided.hpp"
#include "host/patient_call.hpp"
#include "inventory/descriptor_walk.hpp"
#include "inventory/patient_read.hpp"
#include "inventory/polled_files.hpp"
#include "inventory/stat_file.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <expected>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

namespace affinityd::inventory {

namespace {

constexpr std::size_t longest_fdinfo = 16U << 20; // some 200,000 files of an epoll
constexpr std::size_t long_fdinfo = 256U << 10;   // some 3,000
constexpr std::chrono::seconds rest_of_long{60};
constexpr std::size_t few_asked = 8;    // connections of an epoll, for their ports
constexpr std::size_t some_asked = 32;  // of those that stay
constexpr std::size_t most_asked = 128; // where they have not all the same, so that chance counts for little
constexpr int most_looks = 8;           // for threads that run when they are looked at
constexpr std::size_t most_takers = 10; // of one listener that are told of
constexpr std::chrono::milliseconds between_looks{1};

bool is_epoll(const host::Dir& descriptors, int number) {
    return descriptors.link(std::to_string(number)) == "anon_inode:[eventpoll]";
}

/// No value: it has ended, or cannot be read.
std::optional<int> parent_of(const host::Root& root, const TaskId& process) {
    StatBuffer buffer;
    const auto line = read_stat(root.proc(), std::to_string(process.tid) + "/stat", buffer);
    if (!line || !*line || (*line)->start_time != process.start_time) return std::nullopt;
    return (*line)->parent;
}

std::vector<int> threads_of(const host::Root& root, int pid) {
    std::vector<int> threads;
    auto entries = NumberedEntries::open(root.proc(), std::to_string(pid) + "/task");
    if (!entries) return threads;
    while (threads.size() < AcceptReader::most_threads) {
        const auto next = entries->next();
        if (!next || !*next) break;
        threads.push_back(**next);
    }
    return threads;
}

} // namespace

/// What a process has open, as far as it matters.
struct AcceptReader::Files {
    struct Socket {
        int number = 0;
        std::uint64_t inode = 0;
        bool may_listen = true;     ///< false: it is known not to
        std::vector<int> epolls{};  ///< that watch it
        std::set<int> threads{};    ///< that wait for it in accept(2)
        bool is_remembered = false; ///< they do not at the moment
    };
    std::vector<Socket> sockets;            ///< ascending
    std::map<int, KnownFiles::Fresh> fresh; ///< by the epolls that were read now
    std::vector<int> epolls;
    Waiters waiters; ///< as far as known

    [[nodiscard]] Socket* find(int number) {
        const auto found = std::ranges::find(sockets, number, &Socket::number);
        return found == sockets.end() ? nullptr : &*found;
    }
    using PortOf = std::function<std::optional<std::uint16_t>(const Socket&)>; ///< the local one
    /// What came to the epolls of listeners besides these: the connections that were taken.
    void count_accepted(AcceptSockets& found, const PortOf& port_of) {
        std::set<std::uint64_t> own;
        std::map<int, std::vector<AcceptSocket*>> of_epolls;
        for (auto& listener : found.sockets) {
            const auto& socket = *find(listener.number);
            own.insert(socket.inode);
            for (const int epoll : socket.epolls)
                of_epolls[epoll].push_back(&listener);
            listener.is_serving = socket.is_remembered || std::ranges::any_of(socket.epolls, [&](int epoll) {
                                      return !fresh.contains(epoll);
                                  });
        }
        const auto is_own = [&](std::uint64_t one) { return own.contains(one); };
        for (auto& [epoll, files] : fresh) {
            files.count -= std::erase_if(files.inodes, is_own);
            if (files.stayed) std::erase_if(*files.stayed, is_own);
            share_out(files, of_epolls[epoll], port_of, found.samples);
        }
    }
    using Ports = std::vector<std::uint16_t>;
    /// Of those whose descriptors were looked at, evenly. `inodes`: ascending.
    [[nodiscard]] Ports ask_ports(const std::vector<std::uint64_t>& inodes, std::size_t most,
                                  const PortOf& port_of) const {
        std::vector<const Socket*> among;
        for (const auto& one : sockets)
            if (std::ranges::binary_search(inodes, one.inode)) among.push_back(&one);
        Ports ports;
        const std::size_t asked = std::min(among.size(), most);
        for (std::size_t i = 0; i < asked; ++i)
            if (const auto port = port_of(*among[i * among.size() / asked])) ports.push_back(*port);
        return ports;
    }
    /// Of so many that stay, some are taken for its own. `came`: ports of those that came.
    [[nodiscard]] bool serves_any(const KnownFiles::Fresh& files, const Ports& came,
                                  const std::vector<AcceptSocket*>& listeners, const PortOf& port_of) const {
        if (!files.stayed || files.stayed->size() > most_asked) return true;
        const auto is_theirs = [&](std::uint16_t port) {
            return std::ranges::find(listeners, port, &AcceptSocket::port) != listeners.end();
        };
        // mostly the first one is: no more are asked than must be
        return std::ranges::any_of(came, is_theirs) ||
               std::ranges::any_of(ask_ports(*files.stayed, 1, port_of), is_theirs) ||
               std::ranges::any_of(ask_ports(*files.stayed, some_asked, port_of), is_theirs);
    }
    /// A worker takes what comes to several ports, and to a listener that workers share by chance; what a
    /// proxy connects to itself is its clients' doing. So some are asked whose they are. Those of one port,
    /// as for IPv4 and IPv6, get all that came to it.
    void share_out(const KnownFiles::Fresh& files, const std::vector<AcceptSocket*>& listeners,
                   const PortOf& port_of, std::map<std::uint16_t, PortSample>& samples) const {
        if (listeners.empty()) return;
        const auto is_first = [&](std::uint16_t port) { return port == listeners.front()->port; };
        auto ports = ask_ports(files.inodes, few_asked, port_of);
        if (!std::ranges::all_of(ports, is_first) ||
            !std::ranges::all_of(listeners, is_first, &AcceptSocket::port))
            ports = ask_ports(files.inodes, most_asked, port_of);
        const bool serves = serves_any(files, ports, listeners, port_of);
        std::set<std::uint16_t> noted;
        for (auto* listener : listeners) {
            listener->is_serving |= serves;
            const auto hits = static_cast<std::size_t>(std::ranges::count(ports, listener->port));
            const auto all = ports.empty() ? files.count : files.count * hits / ports.size();
            listener->accepted = listener->accepted.value_or(0) + all;
            if (noted.insert(listener->port).second)
                samples[listener->port] += PortSample::of(files.count, ports.size(), hits);
        }
    }
    /// Who waits for it, and for epolls that watch it: ascending, the first ones.
    [[nodiscard]] std::vector<int> takers_of(const Socket& socket) const {
        auto waiting = socket.threads;
        for (const int epoll : socket.epolls)
            if (const auto known = waiters.find(epoll);
                known != waiters.end() && waiting.size() < most_takers)
                waiting.insert(known->second.begin(), known->second.end());
        std::vector<int> takers(waiting.begin(), waiting.end());
        takers.resize(std::min(takers.size(), most_takers));
        return takers;
    }
    /// Of each socket that is watched it is known who waits.
    [[nodiscard]] bool are_known() const {
        return std::ranges::all_of(sockets, [&](const Socket& socket) {
            return !socket.threads.empty() ||
                   std::ranges::all_of(socket.epolls, [&](int epoll) { return waiters.contains(epoll); });
        });
    }
};

AcceptReader::Files AcceptReader::list(AcceptSockets& found) const {
    Files files;
    auto entries = NumberedEntries::open(root_.proc(), std::to_string(found.process.tid) + "/fd");
    if (!entries) {
        found.code = entries.error().code;
        return files;
    }
    for (std::size_t looked = 0;; ++looked) {
        const auto number = entries->next();
        if (!number || !*number) break;
        found.is_cut = looked == most_descriptors;
        if (found.is_cut) break;
        if (const auto inode = socket_inode(entries->dir(), **number)) {
            files.sockets.push_back({**number, *inode});
        } else if (files.epolls.size() < most_epolls && is_epoll(entries->dir(), **number)) {
            files.epolls.push_back(**number);
        } else if (files.sockets.empty() && files.epolls.empty()) {
            found.code = why_no_link(entries->dir(), **number);
        }
    }
    return files;
}

std::optional<KnownFiles::Fresh> AcceptReader::read_watched(const TaskId& process, int epoll,
                                                            const Files& files, Watched& watched) {
    const auto now = std::chrono::steady_clock::now();
    if (now < watched.next) return std::nullopt;
    watched.sockets.clear();
    watched.next = {};
    const auto text =
        read_patiently(root_, process.tid, {"fdinfo/" + std::to_string(epoll)}, longest_fdinfo).front();
    if (!text) return std::nullopt;
    const auto polled = parse_polled(*text);
    remembered_ -= std::min(remembered_, watched.files.size());
    auto fresh = watched.files.see(polled, most_remembered_ - std::min(most_remembered_, remembered_));
    remembered_ += watched.files.size();
    for (const auto& socket : files.sockets)
        if (socket.may_listen && std::ranges::binary_search(polled, socket.inode, {}, &PolledFile::inode))
            watched.sockets.push_back(socket.inode);
    std::ranges::sort(watched.sockets);
    if (text->size() > long_fdinfo) {
        if (now >= next_long_) next_long_ = now + rest_of_long;
        watched.next = next_long_;
    }
    return fresh;
}

void AcceptReader::add_epolls(const TaskId& process, Files& files, const GoesOn& goes_on) {
    auto& epolls = seen_[process].epolls;
    std::erase_if(epolls, [&](const auto& one) {
        return std::ranges::find(files.epolls, one.first) == files.epolls.end();
    });
    for (const int epoll : files.epolls) {
        if (!goes_on()) return;
        auto& watched = epolls[epoll];
        if (auto fresh = read_watched(process, epoll, files, watched))
            files.fresh.emplace(epoll, std::move(*fresh));
        for (auto& socket : files.sockets) {
            if (std::ranges::binary_search(watched.sockets, socket.inode)) socket.epolls.push_back(epoll);
        }
    }
}

void AcceptReader::see_waiting(int pid, const std::vector<int>& threads, Files& files) {
    std::vector<std::string> names;
    for (const int thread : threads)
        names.push_back("task/" + std::to_string(thread) + "/syscall");
    const auto texts = read_patiently(root_, pid, std::move(names), 256);
    for (std::size_t i = 0; i < threads.size(); ++i) {
        const auto call = parse_waiting(texts[i].value_or(""));
        if (!call) continue;
        if (call->kind == WaitingCall::Kind::epoll)
            files.waiters[call->number].insert(threads[i]);
        else if (auto* socket = files.find(call->number))
            socket->threads.insert(threads[i]);
    }
}

void AcceptReader::find_waiters(const TaskId& process, Files& files) {
    const auto threads = threads_of(root_, process.tid);
    if (threads.size() == 1) {
        for (const int epoll : files.epolls)
            files.waiters[epoll] = {threads.front()};
        see_waiting(process.tid, threads, files);
        return remember_acceptors(process, threads, files);
    }
    if (const auto seen = seen_.find(process); seen != seen_.end()) files.waiters = seen->second.waiters;
    for (auto& [epoll, waiting] : files.waiters)
        std::erase_if(waiting, [&](int thread) { return !std::ranges::binary_search(threads, thread); });
    std::erase_if(files.waiters, [&](const auto& one) {
        return one.second.empty() || std::ranges::find(files.epolls, one.first) == files.epolls.end();
    });
    for (int look = 0; look < most_looks; ++look) {
        if (look > 0) std::this_thread::sleep_for(between_looks);
        see_waiting(process.tid, threads, files);
        if (files.are_known()) break;
    }
    seen_[process].waiters = files.waiters;
    remember_acceptors(process, threads, files);
}

/// Who serves a connection, one at a time, will wait in accept(2) again.
void AcceptReader::remember_acceptors(const TaskId& process, const std::vector<int>& threads, Files& files) {
    const auto seen = seen_.find(process);
    const auto before = seen == seen_.end() ? Acceptors() : std::exchange(seen->second.acceptors, {});
    Acceptors now;
    for (auto& socket : files.sockets) {
        const bool is_seen = !socket.threads.empty();
        if (const auto known = before.find(socket.inode); socket.threads.empty() && known != before.end())
            std::ranges::copy_if(known->second, std::inserter(socket.threads, socket.threads.end()),
                                 [&](int thread) { return std::ranges::binary_search(threads, thread); });
        socket.is_remembered = !socket.threads.empty() && !is_seen;
        if (!socket.threads.empty()) now[socket.inode] = socket.threads;
    }
    if (!now.empty()) seen_[process].acceptors = std::move(now);
}

namespace {

/// What a socket is, apart from who waits for it; no value: no listener.
using Looked = std::expected<std::optional<AcceptSocket>, int>;

Looked look_at(const host::ForeignFiles& files, int number, std::uint64_t inode) {
    if (host::is_avoided(files.pid(), {host::Avoid::inode, inode})) return std::unexpected(EBUSY);
    const auto looked = host::patiently<Looked>([files, number, inode](host::InUse& at) -> Looked {
        at.pid = files.pid();
        at.inode = inode; // whoever has it open
        const auto socket = files.socket(number);
        if (!socket) return std::unexpected(socket.error());
        if (!socket->begin_use(at)) return std::unexpected(EBUSY);
        std::optional<AcceptSocket> found;
        if (socket->accepts())
            found = {socket->cookie().value_or(0),
                     number,
                     socket->port(),
                     socket->bound_to(),
                     socket->shares_port(),
                     socket->incoming_cpu().value_or(-1),
                     {},
                     {},
                     inode,
                     false,
                     {},
                     socket->backlog()};
        files.let_owner_close_last(number, inode);
        return found;
    });
    if (looked) return *looked;
    return std::unexpected(host::to_errno(looked.error()));
}

std::optional<std::uint16_t> local_port(const host::ForeignFiles& files, int number, std::uint64_t inode) {
    using Port = std::optional<std::uint16_t>;
    if (host::is_avoided(files.pid(), {host::Avoid::inode, inode})) return std::nullopt;
    return host::patiently<Port>([files, number, inode](host::InUse& at) -> Port {
               at.pid = files.pid();
               at.inode = inode;
               const auto socket = files.socket(number);
               const auto port = socket && socket->begin_use(at) ? Port(socket->port()) : std::nullopt;
               files.let_owner_close_last(number, inode);
               return port;
           })
        .value_or(std::nullopt);
}

} // namespace

void AcceptReader::look_into(const host::ForeignFiles& theirs, const Files& files, AcceptSockets& found,
                             const GoesOn& goes_on) const {
    std::size_t looked = 0;
    for (const auto& one : files.sockets) {
        if (!one.may_listen) continue;
        if (one.threads.empty() && one.epolls.empty()) continue; // it has it open, but takes nothing from it
        if (looked++ >= most_sockets) {
            if (!found.knows_all) break; // it may be a connection
            ++found.left_out;
            continue;
        }
        if (!goes_on() || found.is_avoided()) break;
        auto socket = look_at(theirs, one.number, one.inode);
        if (!socket && socket.error() != EBADF && socket.error() != ENOTSOCK) found.code = socket.error();
        if (!socket || !*socket) continue;
        (*socket)->threads = files.takers_of(one);
        found.sockets.push_back(std::move(**socket));
    }
}

AcceptSockets AcceptReader::read(const TaskId& process, AcceptAround around, const GoesOn& goes_on) {
    AcceptSockets found{process};
    found.around = std::move(around.listening);
    found.user = around.user;
    const auto are_all = found.around != nullptr && found.around->are_all_of(found.user);
    const auto theirs = host::ForeignFiles::open(process.tid);
    const auto parent = parent_of(root_, process); // whose files they are
    if (!theirs || !parent) {
        found.code = theirs ? ESRCH : theirs.error();
        found.knows_all = !found.is_avoided(); // it has what it had
        return found;
    }
    found.parent = *parent;
    auto files = list(found);
    for (auto& socket : files.sockets) {
        const bool listens = found.around != nullptr && found.around->contains(socket.inode);
        socket.may_listen = listens || !are_all;
        if (listens) found.held.push_back(socket.inode);
    }
    found.knows_all = found.code == 0 && are_all && std::ranges::all_of(found.held, [&](std::uint64_t inode) {
                          return found.around->are_all_of(*found.around->user_of(inode));
                      });
    if (files.sockets.empty()) return found;
    add_epolls(process, files, goes_on);
    find_waiters(process, files);
    if (host::is_process_avoided(process.tid)) found.code = EBUSY;
    look_into(*theirs, files, found, goes_on);
    files.count_accepted(
        found, [&](const Files::Socket& one) { return local_port(*theirs, one.number, one.inode); });
    if (!goes_on()) {
        found.code = EDQUOT;
        found.sockets.clear();
    }
    found.knows_all = found.knows_all && found.code == 0 && found.left_out == 0;
    return found;
}

void AcceptReader::keep_only(std::span<const TaskId> processes) {
    const std::set<TaskId> wanted(processes.begin(), processes.end());
    std::erase_if(seen_, [&](const auto& one) { return !wanted.contains(one.first); });
    remembered_ = 0;
    for (const auto& [process, seen] : seen_)
        for (const auto& [epoll, watched] : seen.epolls)
            remembered_ += watched.files.size();
}

} // namespace affinityd::inventory
