// SPDX-License-Identifier: Apache-2.0
#include "inventory/sockets.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "host/fd.hpp"
#include "host/netlink.hpp"
#include "host/scheduler.hpp"
#include "host/signals.hpp"
#include "inventory/descriptors.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netlink/msg.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::inventory {

namespace {

constexpr unsigned tcp_established = 1; // include/net/tcp_states.h, the same numbers in both interfaces
constexpr unsigned tcp_close = 7;
constexpr unsigned tcp_listen = 10;

SocketState state_of(Protocol protocol, unsigned number) {
    if (number == tcp_established) return SocketState::established;
    if (number == (protocol == Protocol::tcp ? tcp_listen : tcp_close)) return SocketState::listen;
    return SocketState::other;
}

template <class Number>
bool parse_hex(std::string_view text, Number& number) {
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
    return !text.empty() && status == std::errc{} && end == text.data() + text.size();
}

/// "0100007F:1F90": 32-bit words of the address in the machine's byte order, the port as a number.
bool parse_endpoint(std::string_view text, IpAddress& address, std::uint16_t& port) {
    const auto colon = text.find(':');
    if (colon != 8 && colon != 32) return false;
    std::array<std::uint8_t, 16> bytes{};
    for (std::size_t i = 0; i < colon / 8; ++i) {
        std::uint32_t word = 0;
        if (!parse_hex(text.substr(i * 8, 8), word)) return false;
        std::memcpy(bytes.data() + i * 4, &word, 4);
    }
    address = colon == 32 ? IpAddress{bytes} : IpAddress::from_ipv4({bytes[0], bytes[1], bytes[2], bytes[3]});
    return parse_hex(text.substr(colon + 1), port);
}

using Take = std::function<void(const LocalSocket&)>;

constexpr std::size_t table_file_limit = 64U << 20;
constexpr std::size_t other_file_limit = 4U << 20;
constexpr std::size_t namespace_file_limit = 256U << 10;

bool lives_in_this_namespace(const host::Root& root, const std::string& process) {
    const auto own = root.proc().link("self/ns/net");
    const auto theirs = root.proc().link(process + "/ns/net");
    return !own || !theirs || *own == *theirs;
}

/// Hands on the kernel's list of one protocol and address family. False: this kernel has no sock_diag for it.
Result<bool> ask_kernel(const NetFile& list, Wanted wanted, SocketTable& table, const Take& take) {
    auto socket = host::open_netlink(NETLINK_SOCK_DIAG);
    if (!socket) return std::unexpected(socket.error());
    auto message = host::make_request(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP);
    if (!message) return std::unexpected(message.error());
    inet_diag_req_v2 request{};
    request.sdiag_family = static_cast<__u8>(list.family);
    request.sdiag_protocol = list.protocol == Protocol::tcp ? IPPROTO_TCP : IPPROTO_UDP;
    // A UDP socket is "closed" without a peer and "established" with one.
    request.idiag_states = 1U << (list.protocol == Protocol::tcp ? tcp_listen : tcp_close);
    if (wanted == Wanted::all) request.idiag_states |= 1U << tcp_established;
    if (nlmsg_append(message->get(), &request, sizeof request, NLMSG_ALIGNTO) < 0)
        return fail("cannot allocate a netlink message");
    const auto forget = [&table, before = table.sockets.size()] {
        table.sockets.resize(before);
        table.is_truncated = false;
    };
    const auto take_one = [&](const nlmsghdr& head) {
        const auto* data = static_cast<const std::byte*>(nlmsg_data(&head));
        const auto size = static_cast<std::size_t>(nlmsg_datalen(&head));
        if (const auto found = parse_inet_diag({data, size}, list.protocol)) take(*found);
    };
    return host::ask(**socket, **message, {forget, take_one});
}

bool holds(const PortRanges& ports, std::uint16_t port) {
    return std::ranges::any_of(
        ports, [port](const auto& range) { return range.first <= port && port <= range.second; });
}

} // namespace

std::optional<LocalSocket> parse_inet_diag(std::span<const std::byte> message, Protocol protocol) {
    inet_diag_msg head{};
    if (message.size() < sizeof head) return std::nullopt;
    std::memcpy(&head, message.data(), sizeof head);
    if (head.idiag_family != AF_INET && head.idiag_family != AF_INET6) return std::nullopt;
    LocalSocket socket;
    std::memcpy(socket.local.bytes.data(), head.id.idiag_src, socket.local.bytes.size());
    if (head.idiag_family == AF_INET) {
        const auto& bytes = socket.local.bytes;
        socket.local = IpAddress::from_ipv4({bytes[0], bytes[1], bytes[2], bytes[3]});
    }
    socket.inode = head.idiag_inode;
    socket.interface = head.id.idiag_if;
    socket.user = head.idiag_uid;
    socket.port = ntohs(head.id.idiag_sport);
    socket.protocol = protocol;
    socket.state = state_of(protocol, head.idiag_state);
    return socket;
}

std::optional<LocalSocket> parse_net_line(std::string_view line, Protocol protocol) {
    // sl: local remote state queues timer retransmits uid timeout inode ...
    const auto words = split_words(line);
    if (words.size() < 10 || !words[0].ends_with(':')) return std::nullopt;
    LocalSocket socket;
    IpAddress remote;
    std::uint16_t remote_port = 0;
    unsigned state = 0;
    if (!parse_endpoint(words[1], socket.local, socket.port) ||
        !parse_endpoint(words[2], remote, remote_port) || !parse_hex(words[3], state))
        return std::nullopt;
    const auto inode = parse_number<std::uint32_t>(words[9]);
    const auto user = parse_number<std::uint32_t>(words[7]);
    if (!inode || !user) return std::nullopt;
    socket.inode = *inode;
    socket.user = *user;
    socket.protocol = protocol;
    socket.state = state_of(protocol, state);
    return socket;
}

constexpr std::array<NetFile, 4> net_files{{{"net/tcp", Protocol::tcp, AF_INET},
                                            {"net/tcp6", Protocol::tcp, AF_INET6},
                                            {"net/udp", Protocol::udp, AF_INET},
                                            {"net/udp6", Protocol::udp, AF_INET6}}};

Result<bool> read_first_sockets(const host::Root& root, const std::string& folder, const NetFile& file,
                                std::size_t limit, const std::function<bool(const LocalSocket&)>& take) {
    constexpr std::size_t part = 16U << 10;
    const auto open = root.proc().open_file(folder + file.name, O_RDONLY | O_NONBLOCK);
    if (!open && host::means_absent(open.error().code)) return true;
    if (!open) return std::unexpected(open.error());
    std::string text;
    for (std::size_t read = 0; read < limit;) {
        const auto more = host::read_rest(*open, std::min(part, limit - read));
        if (!more && host::means_absent(more.error())) return true;
        if (!more) return fail("cannot read the list of sockets", folder + file.name, more.error());
        if (more->empty()) {
            if (const auto socket = parse_net_line(text, file.protocol)) take(*socket);
            return true;
        }
        read += more->size();
        text += *more;
        std::size_t begin = 0;
        for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
            const std::string_view line(text.data() + begin, end - begin);
            if (const auto socket = parse_net_line(line, file.protocol); socket && !take(*socket))
                return true;
            begin = end + 1;
        }
        text.erase(0, begin);
    }
    return false;
}

Result<bool> read_net_file(const host::Root& root, const std::string& folder, const NetFile& file,
                           std::size_t limit, const std::function<void(const LocalSocket&)>& take) {
    return read_first_sockets(root, folder, file, limit, [&](const LocalSocket& socket) {
        take(socket);
        return true;
    });
}

const LocalSocket* SocketTable::find(std::uint64_t inode) const {
    const auto at = std::ranges::lower_bound(sockets, inode, {}, &LocalSocket::inode);
    return at != sockets.end() && at->inode == inode ? &*at : nullptr;
}

Result<SocketTable> read_sockets_of(const host::Root& root, int pid, const SocketQuestion& asked) {
    SocketTable table;
    const auto take = [&](const LocalSocket& socket) {
        if (socket.inode == 0 || socket.state == SocketState::other) return;
        if (asked.wanted == Wanted::listeners && !socket.listens()) return;
        if (!asked.ports.empty() && !holds(asked.ports, socket.port)) return;
        if (table.sockets.size() < asked.most)
            table.sockets.push_back(socket);
        else
            table.is_truncated = true;
    };
    const bool is_own = pid == 0;
    const auto folder = is_own ? "" : std::to_string(pid) + "/";
    for (const auto& list : net_files) {
        if (table.is_truncated) break;
        auto done =
            is_own && root.is_live() ? ask_kernel(list, asked.wanted, table, take) : Result<bool>(false);
        if (done && !*done)
            done = read_net_file(root, folder, list, is_own ? table_file_limit : other_file_limit, take);
        if (!done) return std::unexpected(std::move(done.error()));
    }
    std::ranges::sort(table.sockets, {}, &LocalSocket::inode);
    return table;
}

Result<SocketTable> read_socket_table(const host::Root& root, const SocketQuestion& asked) {
    return read_sockets_of(root, 0, asked);
}

std::vector<std::uint64_t> read_local_inodes(const host::Root& root, int pid) {
    std::vector<std::uint64_t> inodes;
    for (const auto& [file, column] : {std::pair{"/net/unix", 6U}, {"/net/netlink", 9U}}) {
        const auto text = root.proc().read(std::to_string(pid) + file, other_file_limit);
        if (!text || !*text) continue;
        for (const auto line : split(**text, '\n'))
            if (const auto words = split_words(line); words.size() > column)
                if (const auto inode = parse_number<std::uint64_t>(words[column])) inodes.push_back(*inode);
    }
    sort_unique(inodes);
    return inodes;
}

Listeners::Listeners(const host::Root& root) : root_(root), news_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

/// Others may open so many sockets that a list takes seconds: the pause is no shorter than that.
void Listeners::work(const std::stop_token& stop) {
    using std::chrono::seconds;
    host::give_way();
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !ports_.empty(); }) && !stop.stop_requested()) {
        const auto now = ports_;
        lock.unlock();
        const auto begun = thread_time();
        auto found = read_socket_table(root_, {Wanted::listeners, SocketTable::most_sockets, now});
        const auto used = thread_time() - begun;
        lock.lock();
        if (now != ports_) continue;
        bool has_new = false;
        if (found) {
            const auto inode = &LocalSocket::inode;
            has_new = list_ && !std::ranges::includes(list_->sockets, found->sockets, {}, inode, inode);
            list_ = std::make_shared<const SocketTable>(std::move(*found));
            fault_.reset();
        } else {
            fault_ = found.error();
        }
        changed_.notify_all();
        const std::uint64_t one = 1;
        if (has_new) std::ignore = ::write(news_.get(), &one, sizeof one);
        const auto pause = std::max<std::chrono::nanoseconds>(used, has_new ? seconds(5) : seconds(1));
        changed_.wait_for(lock, stop, pause, [&] { return now != ports_; });
    }
}

void Listeners::want(PortRanges ports) {
    const std::lock_guard lock(mutex_);
    if (ports == ports_) return;
    ports_ = std::move(ports);
    list_.reset();
    changed_.notify_all();
    if (thread_.joinable()) return;
    const host::BlockedSignals blocked;
    try {
        thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
    } catch (const std::system_error& error) {
        fault_ = fail("no thread is to be had", {}, error.code().value()).error();
    }
}

std::shared_ptr<const SocketTable> Listeners::list() const {
    const std::lock_guard lock(mutex_);
    return ports_.empty() ? std::make_shared<const SocketTable>() : list_;
}

bool Listeners::is_awaited(std::chrono::microseconds patience) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, patience, [this] { return list_ || fault_ || ports_.empty(); });
}

int Listeners::fd() const { return news_.get(); }

void Listeners::take_news() {
    std::uint64_t count = 0;
    std::ignore = ::read(news_.get(), &count, sizeof count);
}

std::optional<Error> Listeners::fault() const {
    const std::lock_guard lock(mutex_);
    return fault_;
}

std::vector<std::uint16_t> ports_of(const SocketTable& table, const std::vector<std::uint64_t>& inodes) {
    std::vector<std::uint16_t> ports;
    for (const auto inode : inodes)
        if (const auto* socket = table.find(inode)) ports.push_back(socket->port);
    sort_unique(ports);
    return ports;
}

Result<std::vector<LocalSocket>> read_namespace_listeners(const host::Root& root,
                                                          const std::string& process) {
    std::vector<LocalSocket> listeners;
    for (const auto& file : net_files) {
        const auto read =
            read_net_file(root, process + "/", file, namespace_file_limit, [&](const LocalSocket& socket) {
                if (socket.listens()) listeners.push_back(socket);
            });
        if (!read) return std::unexpected(read.error());
    }
    return listeners;
}

bool shares_network_namespace(const host::Root& root, int pid) {
    return lives_in_this_namespace(root, std::to_string(pid));
}

std::vector<std::uint16_t> foreign_listen_ports(const host::Root& root, const std::string& process,
                                                const std::vector<std::uint64_t>& inodes) {
    std::vector<std::uint16_t> ports;
    if (lives_in_this_namespace(root, process)) return ports;
    if (inodes.empty()) return ports;
    for (const auto& socket : read_namespace_listeners(root, process).value_or(std::vector<LocalSocket>{}))
        if (std::ranges::binary_search(inodes, socket.inode)) ports.push_back(socket.port);
    sort_unique(ports);
    return ports;
}

} // namespace affinityd::inventory
