// SPDX-License-Identifier: Apache-2.0
#include "host/proc_event.hpp"

#include <algorithm>
#include <cstring>

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>

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

template <class T>
std::optional<ProcEvent> with_process(ProcEvent event, std::span<const std::byte> bytes) {
    T data{};
    if (!load(bytes, data_at, data)) return std::nullopt;
    event.tid = data.process_pid; // the connector's "pid" is a thread, its "tgid" the process
    event.pid = data.process_tgid;
    if constexpr (requires { data.parent_tgid; }) event.parent_pid = data.parent_tgid;
    if constexpr (requires { data.comm; }) std::copy_n(data.comm, event.name.size(), event.name.begin());
    return event;
}

using Data = decltype(proc_event::event_data);

std::optional<ProcEvent> parse_fork(ProcEvent event, std::span<const std::byte> bytes) {
    Data::fork_proc_event data{};
    if (!load(bytes, data_at, data)) return std::nullopt;
    event.tid = data.child_pid;
    event.pid = data.child_tgid;
    event.parent_pid = data.parent_tgid;
    return event;
}

std::optional<ProcEvent> parse_body(std::span<const std::byte> bytes) {
    ProcEvent event;
    std::uint32_t what = 0;
    if (!load(bytes, offsetof(proc_event, what), what)) return std::nullopt;
    if (!load(bytes, offsetof(proc_event, timestamp_ns), event.timestamp_ns)) return std::nullopt;
    switch (what) {
    case proc_event::PROC_EVENT_FORK:
        event.kind = ProcEvent::Kind::fork;
        return parse_fork(event, bytes);
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

} // namespace affinityd::host
