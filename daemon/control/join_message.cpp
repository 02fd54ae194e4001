// SPDX-License-Identifier: Apache-2.0
#include "control/join_message.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string_view>

namespace affinityd::control {

namespace {

using Wish = app::JoinRequest::Wish;

template <std::size_t size>
void put_text(char (&into)[size], std::string_view text) {
    text = text.substr(0, size - 1);
    std::ranges::copy(text, into);
}

bool is_printable(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

int status_of(app::JoinOutcome outcome) {
    using app::JoinOutcome;
    switch (outcome) {
    case JoinOutcome::done:
        return 1;
    case JoinOutcome::no_daemon:
        return 0;
    case JoinOutcome::not_yours:
        return -EPERM;
    case JoinOutcome::no_policy:
        return -ESRCH;
    case JoinOutcome::not_allowed:
        return -EACCES;
    case JoinOutcome::released:
        return -ECANCELED;
    case JoinOutcome::too_many:
        return -ENOSPC;
    case JoinOutcome::put_off:
        return -EBUSY;
    case JoinOutcome::no_slot:
        return -ENXIO;
    case JoinOutcome::crowded:
        return -EUSERS;
    }
    return -EINVAL;
}

/// The wish with what belongs to it, and nothing else.
std::expected<app::JoinRequest, int> wish_of(const affinityd_join_request& raw, std::string_view slot) {
    app::JoinRequest request{.own_pid = raw.pid, .tid = raw.tid};
    const bool has_cpu = raw.cpu != -1;
    bool is_good = !has_cpu && slot.empty();
    switch (raw.wish) {
    case AFFINITYD_WISH_JOIN:
        request.wish = Wish::join;
        request.slot = slot;
        is_good = !has_cpu && !slot.empty() && is_printable(slot);
        break;
    case AFFINITYD_WISH_SERVE:
        request.wish = Wish::serve;
        request.cpu = static_cast<unsigned>(raw.cpu);
        is_good = raw.cpu >= 0 && slot.empty();
        break;
    case AFFINITYD_WISH_LEAVE:
        request.wish = Wish::leave;
        break;
    case AFFINITYD_WISH_WHERE:
        request.wish = Wish::where;
        break;
    default:
        return std::unexpected(-ENOSYS);
    }
    if (!is_good) return std::unexpected(-EINVAL);
    return request;
}

} // namespace

std::expected<app::JoinRequest, int> parse_join(std::span<const std::byte> packet) {
    affinityd_join_request raw{};
    if (packet.size() != sizeof raw) return std::unexpected(-EBADMSG);
    std::memcpy(&raw, packet.data(), sizeof raw);
    if (raw.magic != AFFINITYD_JOIN_MAGIC) return std::unexpected(-EBADMSG);
    if (raw.version != AFFINITYD_JOIN_VERSION) return std::unexpected(-EPROTONOSUPPORT);
    const auto* end = std::ranges::find(raw.slot, '\0');
    const bool is_clean = end != std::end(raw.slot) &&
                          std::ranges::all_of(end, std::end(raw.slot), [](char c) { return c == '\0'; }) &&
                          std::ranges::all_of(raw.rest, [](auto word) { return word == 0; });
    if (!is_clean || raw.pid <= 0 || raw.tid <= 0) return std::unexpected(-EINVAL);
    return wish_of(raw, {raw.slot, end});
}

affinityd_join_reply refusal(int status) {
    affinityd_join_reply reply{};
    reply.magic = AFFINITYD_JOIN_MAGIC;
    reply.status = status;
    return reply;
}

affinityd_join_reply reply_to(const app::JoinAnswer& answer) {
    auto reply = refusal(status_of(answer.outcome));
    put_text(reply.policy, answer.policy);
    put_text(reply.slot, answer.slot);
    if (!answer.slot.empty()) reply.flags |= AFFINITYD_JOINED;
    if (answer.serves) reply.flags |= AFFINITYD_SERVES;
    return reply;
}

} // namespace affinityd::control
