// SPDX-License-Identifier: Apache-2.0
#include "enforcer/interface_queues.hpp"

#include "machine/queue_files.hpp"
#include "netdev/channels.hpp"

#include <cerrno>

namespace affinityd::enforcer {

namespace {

using machine::Channels;

/// Only what is to be another number.
netdev::ChannelChange change_of(const Channels& from, const Channels& to) {
    netdev::ChannelChange change;
    if (from.rx != to.rx) change.rx = to.rx;
    if (from.tx != to.tx) change.tx = to.tx;
    if (from.combined != to.combined) change.combined = to.combined;
    return change;
}

} // namespace

Outcome queue_count_outcome(int code) {
    switch (code) {
    case EINTR:
    case EAGAIN:
    case ENODEV: // in power save, being reset, or dead: what has gone is not found in the first place
        return Outcome::busy;
    case EPERM:
    case EACCES:
        return Outcome::not_permitted;
    default:
        return Outcome::failed;
    }
}

std::string_view refusal_hint(const machine::Subject& subject, int code) {
    if (!std::holds_alternative<machine::QueueCount>(subject)) return {};
    if (code == EINVAL)
        return " (its flow table, ethtool -x, an XDP program or an AF_XDP socket may need other numbers)";
    if (code == EOPNOTSUPP) return " (its driver cannot change it)";
    return {};
}

Applied InterfaceQueues::write(const machine::QueueCount& subject, const planner::Action& action) const {
    const auto ifindex = machine::find_ifindex(root_, subject);
    if (!ifindex) return {Outcome::busy, {}, ifindex.error().code};
    if (!*ifindex) return {Outcome::gone, {}, ENODEV};
    const auto present = machine::read_setting(root_, subject);
    if (!present) return {Outcome::busy, {}, present.error().code};
    if (!*present) return {Outcome::gone, {}, EOPNOTSUPP};
    const int code = netdev::set_channels(**ifindex, change_of((*present)->channels(), action.to.channels()));
    const auto granted = machine::read_setting(root_, subject);
    // Only the answer may have been lost.
    const bool is_set = **present != action.to && granted && *granted == action.to;
    if (code != 0 && !is_set) return {queue_count_outcome(code), {}, code};
    return {Outcome::done, granted ? granted->value_or(action.to) : action.to, 0};
}

} // namespace affinityd::enforcer
