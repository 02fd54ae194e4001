// SPDX-License-Identifier: Apache-2.0
#include "host/proc_connector.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::host {

namespace {

constexpr int receive_buffer = 8 << 20;       ///< bytes; about 60,000 events while we are busy
constexpr std::size_t datagram_size = 4096;   ///< an event is about 80 bytes, one to a datagram
constexpr std::size_t most_per_drain = 4096;

// The kernel's own numbers: the header's enum moved into the struct and out of it again between versions.
constexpr std::uint32_t event_fork = 0x00000001;
constexpr std::uint32_t event_exec = 0x00000002;
constexpr std::uint32_t event_comm = 0x00000200;
constexpr std::uint32_t event_exit = 0x80000000;

/// Offsets in a datagram: netlink header, connector header, then the event.
constexpr std::size_t message_at = NLMSG_HDRLEN;
constexpr std::size_t event_at = message_at + sizeof(cn_msg);
constexpr std::size_t what_at = event_at;
constexpr std::size_t data_at = event_at + 16; ///< what, cpu, timestamp

template <class T>
T value_at(std::span<const std::byte> bytes, std::size_t offset) {
    T value{};
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

std::optional<ProcEvent> parse_one(std::span<const std::byte> message) {
    if (message.size() < data_at + 16) return std::nullopt;
    const auto id = value_at<cb_id>(message, message_at);
    if (id.idx != CN_IDX_PROC || id.val != CN_VAL_PROC) return std::nullopt;
    const auto number = [&](std::size_t index) { return value_at<std::int32_t>(message, data_at + index * 4); };
    switch (value_at<std::uint32_t>(message, what_at)) {
    case event_fork: // parent pid, parent tgid, child pid, child tgid
        return ProcEvent{ProcEvent::Kind::fork, number(3), number(2), number(1)};
    case event_exec: return ProcEvent{ProcEvent::Kind::exec, number(1), number(0), 0};
    case event_comm: return ProcEvent{ProcEvent::Kind::comm, number(1), number(0), 0};
    case event_exit: return ProcEvent{ProcEvent::Kind::exit, number(1), number(0), 0};
    default: return std::nullopt;
    }
}

int subscribe(nl_sock* socket, proc_cn_mcast_op op) {
    cn_msg header{};
    header.id = {CN_IDX_PROC, CN_VAL_PROC};
    const auto operation = static_cast<std::uint32_t>(op);
    header.len = sizeof operation;
    std::array<std::byte, sizeof header + sizeof operation> bytes{};
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, &operation, sizeof operation);
    return nl_send_simple(socket, NLMSG_DONE, 0, bytes.data(), bytes.size());
}

} // namespace

void parse_proc_events(std::span<const std::byte> datagram, const std::function<void(const ProcEvent&)>& sink) {
    while (datagram.size() >= NLMSG_HDRLEN) {
        const auto header = value_at<nlmsghdr>(datagram, 0);
        if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > datagram.size()) return;
        if (const auto event = parse_one(datagram.first(header.nlmsg_len))) sink(*event);
        datagram = datagram.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size()));
    }
}

void ProcConnector::Free::operator()(nl_sock* socket) const {
    static_cast<void>(subscribe(socket, PROC_CN_MCAST_IGNORE));
    nl_socket_free(socket);
}

ProcConnector::ProcConnector(std::unique_ptr<nl_sock, Free> socket) : socket_(std::move(socket)), buffer_(datagram_size) {}

Result<ProcConnector> ProcConnector::open() {
    std::unique_ptr<nl_sock, Free> socket(nl_socket_alloc());
    if (!socket) return fail("no memory for a netlink socket", {}, ENOMEM);
    if (const int status = nl_connect(socket.get(), NETLINK_CONNECTOR); status < 0)
        return fail(std::string("cannot open the process connector: ") + nl_geterror(status));
    if (const int status = nl_socket_add_membership(socket.get(), CN_IDX_PROC); status < 0)
        return fail(std::string("cannot join the process connector: ") + nl_geterror(status));
    const int fd = nl_socket_get_fd(socket.get());
    // Beyond net.core.rmem_max, which is meant for applications: a burst of births must not cost a full pass.
    if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &receive_buffer, sizeof receive_buffer) != 0)
        ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    ProcConnector connector(std::move(socket));
    connector.set_filter({});
    if (const int status = subscribe(connector.socket_.get(), PROC_CN_MCAST_LISTEN); status < 0)
        return fail(std::string("cannot subscribe to process events: ") + nl_geterror(status));
    return connector;
}

int ProcConnector::fd() const { return nl_socket_get_fd(socket_.get()); }

void ProcConnector::set_filter(Wanted wanted) {
    // Loads are big-endian, the event number is in the machine's order: compared after htonl.
    const auto what = [](std::uint32_t value) { return __builtin_bswap32(value); };
    const auto verdict = [](bool keep) { return keep ? 0xffffffffU : 0U; };
    std::array<sock_filter, 10> program{{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, what_at),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what(event_exec), 6, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what(event_comm), 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what(event_fork), 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what(event_exit), 2, 0),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, verdict(wanted.thread_forks)),
        BPF_STMT(BPF_RET | BPF_K, verdict(wanted.exits)),
        BPF_STMT(BPF_RET | BPF_K, 0xffffffffU),
        BPF_STMT(BPF_RET | BPF_K, 0),
    }};
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    // Without a filter everything arrives and is passed over: slower, not wrong.
    static_cast<void>(::setsockopt(fd(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter));
}

ProcConnector::Drained ProcConnector::drain(const std::function<void(const ProcEvent&)>& sink) {
    Drained drained;
    while (drained.events < most_per_drain) {
        sockaddr_nl sender{};
        socklen_t length = sizeof sender;
        const auto got = ::recvfrom(fd(), buffer_.data(), buffer_.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&sender), &length);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == ENOBUFS) {
            drained.lost = true;
            continue;
        }
        if (got <= 0) return drained;
        ++drained.events;
        if (sender.nl_pid != 0) continue; // not from the kernel
        parse_proc_events({buffer_.data(), static_cast<std::size_t>(got)}, sink);
    }
    return drained;
}

} // namespace affinityd::host
