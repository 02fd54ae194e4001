// SPDX-License-Identifier: Apache-2.0
#include "host/proc_connector.hpp"

#include "host/netlink.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <arpa/inet.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace affinityd::host {

namespace {

constexpr std::size_t payload_at = NLMSG_HDRLEN + sizeof(cn_msg);
constexpr std::size_t data_at = offsetof(proc_event, event_data);

/// A copy of what is at `at`: the bytes need not be aligned and may end earlier.
template <class T>
bool load(std::span<const std::byte> bytes, std::size_t at, T& value) {
    if (bytes.size() < at || bytes.size() - at < sizeof(T)) return false;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return true;
}

struct Body {
    std::span<const std::byte> event; ///< a proc_event as far as its sender filled it
    std::uint32_t ack = 0;
};

/// The proc_event inside, cut to what both headers say and the datagram holds.
std::optional<Body> find_event(std::span<const std::byte> datagram) {
    nlmsghdr header{};
    if (!load(datagram, 0, header)) return std::nullopt;
    if (header.nlmsg_len < payload_at || header.nlmsg_len > datagram.size()) return std::nullopt;
    if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_type == NLMSG_NOOP) return std::nullopt;
    cn_msg message{};
    if (!load(datagram, NLMSG_HDRLEN, message)) return std::nullopt;
    if (message.id.idx != CN_IDX_PROC || message.id.val != CN_VAL_PROC) return std::nullopt;
    const auto event = datagram.first(header.nlmsg_len).subspan(payload_at);
    if (message.len > event.size()) return std::nullopt;
    return Body{event.first(message.len), message.ack};
}

using Data = decltype(proc_event::event_data);

/// The connector's "pid" is a thread, its "tgid" the process.
template <class T>
std::optional<ProcEvent> with_process(ProcEvent event, std::span<const std::byte> bytes) {
    T data{};
    if (!load(bytes, data_at, data)) return std::nullopt;
    if constexpr (requires { data.child_pid; }) {
        event.tid = data.child_pid;
        event.pid = data.child_tgid;
    } else {
        event.tid = data.process_pid;
        event.pid = data.process_tgid;
    }
    if constexpr (requires { data.parent_tgid; }) event.parent_pid = data.parent_tgid;
    if constexpr (requires { data.comm; }) std::copy_n(data.comm, event.name.size(), event.name.begin());
    return event;
}

std::optional<ProcEvent> parse_body(std::span<const std::byte> bytes) {
    ProcEvent event;
    std::uint32_t what = 0;
    if (!load(bytes, offsetof(proc_event, what), what)) return std::nullopt;
    load(bytes, offsetof(proc_event, timestamp_ns), event.at);
    switch (what) {
    case proc_event::PROC_EVENT_FORK:
        event.kind = ProcEvent::Kind::fork;
        return with_process<Data::fork_proc_event>(event, bytes);
    case proc_event::PROC_EVENT_EXEC:
        event.kind = ProcEvent::Kind::exec;
        return with_process<Data::exec_proc_event>(event, bytes);
    case proc_event::PROC_EVENT_COMM:
        event.kind = ProcEvent::Kind::comm;
        return with_process<Data::comm_proc_event>(event, bytes);
    case proc_event::PROC_EVENT_UID:
    case proc_event::PROC_EVENT_GID:
        event.kind = ProcEvent::Kind::ids;
        return with_process<Data::id_proc_event>(event, bytes);
    case proc_event::PROC_EVENT_EXIT:
        event.kind = ProcEvent::Kind::exit;
        return with_process<Data::exit_proc_event>(event, bytes);
    default:
        return std::nullopt;
    }
}

} // namespace

std::string_view ProcEvent::comm() const {
    return {name.data(), static_cast<std::size_t>(std::find(name.begin(), name.end(), '\0') - name.begin())};
}

std::optional<ProcEvent> parse_proc_event(std::span<const std::byte> datagram) {
    const auto body = find_event(datagram);
    if (!body) return std::nullopt;
    auto event = parse_body(body->event);
    // Numbers below 1 are tasks outside this pid namespace or nonsense: no action could follow.
    if (!event || event->pid <= 0 || event->tid <= 0) return std::nullopt;
    return event;
}

std::optional<ProcAck> parse_proc_ack(std::span<const std::byte> datagram) {
    const auto body = find_event(datagram);
    if (!body) return std::nullopt;
    std::uint32_t what = 0;
    ProcAck ack{body->ack, 0};
    if (!load(body->event, offsetof(proc_event, what), what) || what != proc_event::PROC_EVENT_NONE)
        return std::nullopt;
    if (!load(body->event, data_at, ack.error)) return std::nullopt;
    return ack;
}

namespace {

constexpr std::uint32_t event_at = NLMSG_HDRLEN + sizeof(cn_msg);
constexpr std::uint32_t event_data_at = event_at + offsetof(proc_event, event_data);
sock_filter load_word(std::uint32_t at) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at); }
sock_filter answer(bool pass) { return BPF_STMT(BPF_RET | BPF_K, pass ? 0xffffffffU : 0U); }

/// Skips `count` instructions unless the event is this one. The filter loads in network order, the kernel
/// wrote in its own.
sock_filter unless_event(std::uint32_t what, std::uint8_t count) {
    return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(what), 0, count);
}

constexpr std::size_t most_muted = 16;

/// The answer to an event of a process that is not muted; its number is at `tgid_at`.
void add_unless_muted(std::vector<sock_filter>& program, std::size_t tgid_at, std::span<const int> muted,
                      bool pass) {
    if (muted.empty() || !pass) return program.push_back(answer(pass));
    program.push_back(load_word(event_data_at + static_cast<std::uint32_t>(tgid_at)));
    for (std::size_t i = 0; i < muted.size(); ++i)
        program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(static_cast<std::uint32_t>(muted[i])),
                                   static_cast<std::uint8_t>(muted.size() - i), 0));
    program.push_back(answer(true));
    program.push_back(answer(false));
}

/// For an event with a thread's and its process's number: two answers.
void add_split(std::vector<sock_filter>& program, std::uint32_t what, std::size_t pid_at, std::size_t tgid_at,
               bool process, bool thread, std::span<const int> muted) {
    std::vector<sock_filter> of_thread;
    add_unless_muted(of_thread, tgid_at, muted, thread);
    program.push_back(unless_event(what, static_cast<std::uint8_t>(5 + of_thread.size())));
    program.push_back(load_word(event_data_at + static_cast<std::uint32_t>(pid_at)));
    program.push_back(BPF_STMT(BPF_MISC | BPF_TAX, 0));
    program.push_back(load_word(event_data_at + static_cast<std::uint32_t>(tgid_at)));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1));
    program.push_back(answer(process));
    program.insert(program.end(), of_thread.begin(), of_thread.end());
}

} // namespace

std::vector<sock_filter> proc_event_filter(const ProcConnector::Wanted& wanted) {
    const auto muted = std::span(wanted.muted).first(std::min(wanted.muted.size(), most_muted));
    std::vector<sock_filter> program;
    program.push_back(load_word(event_at + offsetof(proc_event, what)));
    program.push_back(unless_event(proc_event::PROC_EVENT_EXEC, 1));
    program.push_back(answer(wanted.execs));
    const auto add_unsplit = [&](std::uint32_t what, std::size_t tgid_at, bool pass) {
        std::vector<sock_filter> of_event;
        add_unless_muted(of_event, tgid_at, muted, pass);
        program.push_back(unless_event(what, static_cast<std::uint8_t>(of_event.size())));
        program.insert(program.end(), of_event.begin(), of_event.end());
    };
    add_unsplit(proc_event::PROC_EVENT_COMM, offsetof(Data::comm_proc_event, process_tgid), wanted.renames);
    add_unsplit(proc_event::PROC_EVENT_UID, offsetof(Data::id_proc_event, process_tgid), wanted.ids);
    add_unsplit(proc_event::PROC_EVENT_GID, offsetof(Data::id_proc_event, process_tgid), wanted.ids);
    add_split(program, proc_event::PROC_EVENT_FORK, offsetof(Data::fork_proc_event, child_pid),
              offsetof(Data::fork_proc_event, child_tgid), wanted.process_forks, wanted.thread_forks, muted);
    add_split(program, proc_event::PROC_EVENT_EXIT, offsetof(Data::exit_proc_event, process_pid),
              offsetof(Data::exit_proc_event, process_tgid), wanted.exits, wanted.thread_exits, muted);
    program.push_back(answer(false));
    return program;
}

std::uint32_t proc_event_mask(const ProcConnector::Wanted& wanted) {
    std::uint32_t mask = 0;
    if (wanted.execs) mask |= proc_event::PROC_EVENT_EXEC;
    if (wanted.renames) mask |= proc_event::PROC_EVENT_COMM;
    if (wanted.ids) mask |= proc_event::PROC_EVENT_UID | proc_event::PROC_EVENT_GID;
    if (wanted.process_forks || wanted.thread_forks) mask |= proc_event::PROC_EVENT_FORK;
    if (wanted.exits || wanted.thread_exits) mask |= static_cast<std::uint32_t>(proc_event::PROC_EVENT_EXIT);
    return mask;
}

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
    Result<void> open();
    Result<void> attach(const Wanted& wanted) const;
    Result<void> set_filter(const Wanted& wanted) const;
    void drain(const std::function<void(const ProcEvent&)>& sink, const std::function<bool()>& out_of_time,
               Drained& result);
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

Result<void> ProcConnector::Connection::open() {
    socket.reset(nl_socket_alloc());
    nl_sock* raw = socket.get();
    if (raw == nullptr) return fail("cannot make a netlink socket", {}, ENOMEM);
    nl_socket_disable_auto_ack(raw);
    if (const int code = nl_connect(raw, NETLINK_CONNECTOR); code < 0)
        return fail(std::string("cannot open the process connector: ") + nl_geterror(code));
    const int size = receive_buffer;
    // Without CAP_NET_ADMIN the buffer stays small; losses are healed, so this is no fault.
    ::setsockopt(fd(), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    if (nl_socket_set_nonblocking(raw) < 0)
        return fail("cannot make the process connector non-blocking", {}, errno);
    if (const int code = nl_socket_add_membership(raw, CN_IDX_PROC); code < 0)
        return fail(std::string("cannot join the group of process events: ") + nl_geterror(code));
    return subscribe();
}

Result<void> ProcConnector::Connection::set_filter(const Wanted& wanted) const {
    if (auto done = attach(wanted); !done) return done;
    if (!has_mask) return {};
    auto mask = proc_event_mask(wanted);
    // No bit at all would mean everything; an exec event is what the socket filter drops most cheaply.
    if (mask == 0) mask = proc_event::PROC_EVENT_EXEC;
    if (send_request(socket.get(), PROC_CN_MCAST_LISTEN, mask) < 0)
        return fail("cannot send to the process connector", {}, errno);
    return {};
}

void ProcConnector::Connection::drain(const std::function<void(const ProcEvent&)>& sink,
                                      const std::function<bool()>& out_of_time, Drained& result) {
    while (true) {
        while (next < filled) {
            const auto event = parse_proc_event(datagram(next++));
            if (!event) continue;
            sink(*event);
            // After several at once more are on their way, and cost less than another turn of the loop.
            if (++result.events == 1 && filled == 1) return;
            result.more = result.events >= most_events || out_of_time();
            if (result.more) return;
        }
        const int got = receive();
        if (got < 0 && errno == ENOBUFS) {
            result.lost = true;
            continue;
        }
        if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK) result.error = errno;
        if (got <= 0) return;
        next = 0;
        filled = static_cast<std::size_t>(got);
    }
}

ProcConnector::ProcConnector() = default;
ProcConnector::~ProcConnector() = default;

Result<std::unique_ptr<ProcConnector>> ProcConnector::open(const Wanted& wanted) {
    std::unique_ptr<ProcConnector> connector(new ProcConnector);
    connector->both_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!connector->both_) return fail("cannot make an epoll set", {}, errno);
    for (auto& connection : connector->connections_) {
        connection = std::make_unique<Connection>();
        if (auto done = connection->open(); !done) return std::unexpected(done.error());
        epoll_event event{.events = EPOLLIN, .data = {}};
        if (::epoll_ctl(connector->both_.get(), EPOLL_CTL_ADD, connection->fd(), &event) != 0)
            return fail("cannot watch the process connector", {}, errno);
    }
    if (auto done = connector->set_filter(wanted); !done) return std::unexpected(done.error());
    return connector;
}

int ProcConnector::fd() const { return both_.get(); }

bool ProcConnector::has_events() const {
    if (std::ranges::any_of(connections_, [](const auto& one) { return one->next < one->filled; }))
        return true;
    pollfd asked{fd(), POLLIN, 0};
    return ::poll(&asked, 1, 0) > 0;
}

Result<void> ProcConnector::set_filter(const Wanted& wanted) {
    auto others = wanted;
    others.renames = false;
    const Wanted renames{.execs = false, .renames = wanted.renames, .muted = wanted.muted};
    if (auto done = connections_[0]->set_filter(others); !done) return done;
    return connections_[1]->set_filter(renames);
}

ProcConnector::Drained ProcConnector::drain(const std::function<void(const ProcEvent&)>& sink,
                                            const std::function<bool()>& out_of_time) {
    Drained result;
    for (const auto& connection : connections_)
        if (!result.more) connection->drain(sink, out_of_time, result);
    return result;
}

} // namespace affinityd::host
