// SPDX-License-Identifier: Apache-2.0
#include "host/proc_connector.hpp"

#include "host/netlink.hpp"
#include "host/proc_filter.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <poll.h>
#include <sys/socket.h>

namespace affinityd::host {

namespace {

constexpr int receive_buffer = 16 << 20; // about 20,000 events; only what is queued takes memory
constexpr std::size_t batch = 32;
constexpr std::size_t largest_event = 128; // headers and proc_event are 76 bytes
constexpr std::uint32_t ack_number = 0x61666664;

/// Kernels before 6.6 know the operation alone; newer ones also one followed by a mask of events, 0 for all
/// (struct proc_input, which older headers lack).
int send_request(nl_sock* socket, std::uint32_t operation, std::optional<std::uint32_t> events) {
    const std::array<std::uint32_t, 2> words{operation, events.value_or(0)};
    const std::size_t length = sizeof operation * (events ? 2 : 1);
    cn_msg message{};
    message.id = {CN_IDX_PROC, CN_VAL_PROC};
    message.ack = ack_number;
    message.len = static_cast<__u16>(length);
    std::array<std::byte, sizeof(cn_msg) + sizeof words> request{};
    std::memcpy(request.data(), &message, sizeof message);
    std::memcpy(request.data() + sizeof message, words.data(), length);
    return nl_send_simple(socket, NLMSG_DONE, 0, request.data(), sizeof message + length);
}

constexpr std::uint32_t all_events = 0;

} // namespace

struct ProcConnector::Connection {
    NetlinkSocket socket;
    bool has_mask = false; ///< the kernel takes a mask of events
    bool listening = false;
    std::array<std::array<std::byte, largest_event>, batch> bytes{};
    std::array<sockaddr_nl, batch> senders{};
    std::array<iovec, batch> parts{};
    std::array<mmsghdr, batch> headers{};
    std::size_t filled = 0; ///< messages of the last batch
    std::size_t next = 0;   ///< the first of them that is not yet handed on

    std::size_t used = 0; ///< headers that the last call wrote

    Connection() {
        for (std::size_t i = 0; i < batch; ++i) {
            parts[i] = {bytes[i].data(), bytes[i].size()};
            headers[i].msg_hdr = {.msg_name = &senders[i],
                                  .msg_namelen = sizeof senders[i],
                                  .msg_iov = &parts[i],
                                  .msg_iovlen = 1};
        }
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() {
        // Before 6.6 the kernel counts listeners by what they say, not by open sockets.
        if (listening)
            send_request(socket.get(), PROC_CN_MCAST_IGNORE,
                         has_mask ? std::optional(all_events) : std::nullopt);
    }

    [[nodiscard]] int fd() const { return nl_socket_get_fd(socket.get()); }
    int receive();
    Result<void> attach(const Wanted& wanted) const;
    std::optional<std::uint32_t> take_ack();
    Result<void> subscribe();

    /// Message i of the last batch, if the kernel sent it and it is whole.
    [[nodiscard]] std::span<const std::byte> datagram(std::size_t i) const {
        const bool whole = (headers[i].msg_hdr.msg_flags & MSG_TRUNC) == 0;
        const bool from_kernel =
            headers[i].msg_hdr.msg_namelen == sizeof(sockaddr_nl) && senders[i].nl_pid == 0;
        if (!whole || !from_kernel) return {};
        return std::span<const std::byte>(bytes[i]).first(headers[i].msg_len);
    }
};

/// Number of messages, or -1 with errno.
int ProcConnector::Connection::receive() {
    for (; used > 0; --used) { // what the kernel wrote there
        auto& header = headers[used - 1];
        header.msg_len = 0;
        header.msg_hdr.msg_flags = 0;
        header.msg_hdr.msg_controllen = 0;
        header.msg_hdr.msg_namelen = sizeof(sockaddr_nl);
    }
    int got = 0;
    do {
        got = ::recvmmsg(fd(), headers.data(), batch, MSG_DONTWAIT, nullptr);
    } while (got < 0 && errno == EINTR);
    used = static_cast<std::size_t>(std::max(got, 0));
    return got;
}

Result<void> ProcConnector::Connection::attach(const Wanted& wanted) const {
    auto program = proc_event_filter(wanted);
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    if (::setsockopt(fd(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0)
        return fail("cannot attach the socket filter for process events", {}, errno);
    return {};
}

/// The error number of the kernel's answer, which it queues before the request returns; no value: it
/// gave none.
std::optional<std::uint32_t> ProcConnector::Connection::take_ack() {
    std::optional<std::uint32_t> answer;
    while (true) {
        const int got = receive();
        if (got < 0 && errno == ENOBUFS) continue;
        if (got <= 0) return answer;
        for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i)
            if (const auto ack = parse_proc_ack(datagram(i)); ack && ack->number == ack_number + 1)
                answer = ack->error;
    }
}

/// Asks in the new form for everything (only then is the answer not masked), then in the old one.
Result<void> ProcConnector::Connection::subscribe() {
    if (send_request(socket.get(), PROC_CN_MCAST_LISTEN, all_events) < 0)
        return fail("cannot send to the process connector", {}, errno);
    auto answer = take_ack();
    has_mask = answer.has_value();
    if (!answer) {
        if (send_request(socket.get(), PROC_CN_MCAST_LISTEN, std::nullopt) < 0)
            return fail("cannot send to the process connector", {}, errno);
        answer = take_ack();
    }
    if (!answer)
        return fail("the kernel does not answer on the process connector (it needs CONFIG_PROC_EVENTS, the "
                    "initial pid "
                    "namespace and the initial user namespace)");
    if (*answer != 0)
        return fail("the kernel refuses process events (CAP_NET_ADMIN is needed)", {},
                    static_cast<int>(*answer));
    listening = true;
    return {};
}

ProcConnector::ProcConnector(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
ProcConnector::~ProcConnector() = default;

Result<std::unique_ptr<ProcConnector>> ProcConnector::open(Wanted wanted) {
    auto connection = std::make_unique<Connection>();
    connection->socket.reset(nl_socket_alloc());
    nl_sock* socket = connection->socket.get();
    if (socket == nullptr) return fail("cannot make a netlink socket", {}, ENOMEM);
    nl_socket_disable_auto_ack(socket);
    if (const int code = nl_connect(socket, NETLINK_CONNECTOR); code < 0)
        return fail(std::string("cannot open the process connector: ") + nl_geterror(code));
    const int size = receive_buffer;
    // Without CAP_NET_ADMIN the buffer stays small; losses are healed, so this is no fault.
    ::setsockopt(connection->fd(), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    if (nl_socket_set_nonblocking(socket) < 0)
        return fail("cannot make the process connector non-blocking", {}, errno);
    if (const int code = nl_socket_add_membership(socket, CN_IDX_PROC); code < 0)
        return fail(std::string("cannot join the group of process events: ") + nl_geterror(code));
    if (auto done = connection->subscribe(); !done) return std::unexpected(done.error());
    std::unique_ptr<ProcConnector> connector(new ProcConnector(std::move(connection)));
    if (auto done = connector->set_filter(wanted); !done) return std::unexpected(done.error());
    return connector;
}

int ProcConnector::fd() const { return connection_->fd(); }

bool ProcConnector::has_events() const {
    if (connection_->next < connection_->filled) return true;
    pollfd asked{connection_->fd(), POLLIN, 0};
    return ::poll(&asked, 1, 0) > 0;
}

Result<void> ProcConnector::set_filter(Wanted wanted) {
    if (auto done = connection_->attach(wanted); !done) return done;
    if (!connection_->has_mask) return {};
    auto mask = proc_event_mask(wanted);
    // No bit at all would mean everything; an exec event is what the socket filter drops most cheaply.
    if (mask == 0) mask = proc_event::PROC_EVENT_EXEC;
    if (send_request(connection_->socket.get(), PROC_CN_MCAST_LISTEN, mask) < 0)
        return fail("cannot send to the process connector", {}, errno);
    return {};
}

ProcConnector::Drained ProcConnector::drain(const std::function<void(const ProcEvent&)>& sink,
                                            const std::function<bool()>& out_of_time) {
    Drained result;
    auto& from = *connection_;
    while (true) {
        while (from.next < from.filled) {
            const auto event = parse_proc_event(from.datagram(from.next++));
            if (!event) continue;
            sink(*event);
            // After several at once more are on their way, and cost less than another turn of the loop.
            if (++result.events == 1 && from.filled == 1) return result;
            result.more = result.events == most_events || out_of_time();
            if (result.more) return result;
        }
        const int got = from.receive();
        if (got < 0 && errno == ENOBUFS) {
            result.lost = true;
            continue;
        }
        if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK) result.error = errno;
        if (got <= 0) return result;
        from.next = 0;
        from.filled = static_cast<std::size_t>(got);
    }
}

} // namespace affinityd::host
