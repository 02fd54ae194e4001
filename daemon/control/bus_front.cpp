// SPDX-License-Identifier: Apache-2.0
#include "control/bus_front.hpp"

#include <utility>

#include <unistd.h>

namespace affinityd::control {

namespace {

/// Of a policy, a process or an interface; what others call their things is shorter.
constexpr std::size_t longest_argument = 4096;

} // namespace

bool is_privileged_user(uid_t user) { return user == 0 || user == ::geteuid(); }

BusFront::BusFront(sd_event* event, CommandRunner& runner, Polkit::Connection connection,
                   const Limits& limits)
    : runner_(runner), connection_(std::move(connection)), is_privileged_(limits.is_privileged),
      rate_(limits.calls_per_second, limits.calls_at_once),
      refusals_(limits.refusals_per_second, limits.refusals_at_once),
      told_(std::make_shared<RateLimit>(limits.bytes_per_second, limits.bytes_at_once)),
      others_(limits.others_per_second, limits.others_at_once), most_backlog_(limits.backlog),
      backlog_(std::make_shared<Backlog>(most_backlog_)), polkit_(connection_, limits.polkit),
      answers_(event, {}) {}

int BusFront::serve(sd_bus* bus) {
    backlog_ = std::make_shared<Backlog>(most_backlog_);
    const int status = sd_bus_add_filter(bus, nullptr, on_message, this);
    return status < 0 ? status : add_manager_object(bus, *this);
}

/// What sd-bus would answer by itself, anybody may ask for in any number, and leave unread.
int BusFront::on_message(sd_bus_message* message, void* userdata, sd_bus_error*) {
    auto& self = *static_cast<BusFront*>(userdata);
    std::uint8_t type = 0;
    if (sd_bus_message_get_type(message, &type) < 0 || type != SD_BUS_MESSAGE_METHOD_CALL ||
        reaches_front(message))
        return 0;
    const bool is_answered =
        !Backlog::is_swamped(sd_bus_message_get_bus(message)) && self.others_.take(TokenBucket::Clock::now());
    return is_answered ? 0 : 1;
}

void BusFront::take(Request request) {
    request.call.count_in(backlog_);
    const auto sender = request.call.sender();
    // Kept here, because a question that cannot be asked must still be answered.
    auto kept = std::make_shared<Request>(std::move(request));
    const bool is_asked = users_.find(connection_(), sender, [this, kept](std::optional<uid_t> user) {
        if (user) return take_from(*user, std::move(*kept));
        kept->call.fail(SD_BUS_ERROR_ACCESS_DENIED, "the caller's user is not known");
    });
    if (!is_asked)
        fail_for_limits(kept->call, "too many callers at once, or the bus cannot be asked for their users");
}

void BusFront::take_from(uid_t user, Request request) {
    if (is_privileged_(user)) return runner_.run(std::move(request));
    if (!rate_.take(user, RateLimit::Clock::now())) return refuse(user, request.call);
    if (request.argument.size() > longest_argument)
        return request.call.fail(SD_BUS_ERROR_INVALID_ARGS, "the argument is too long");
    if (only_reads(request.method)) return read(user, std::move(request));
    polkit_.ask(
        std::move(request.call), user,
        [this, method = request.method, argument = request.argument, until = request.until](Call call) {
            runner_.run({method, argument, std::move(call), until});
        });
}

void BusFront::refuse(uid_t user, Call& call) {
    if (!refusals_.take(user, RateLimit::Clock::now())) return call.ignore();
    fail_for_limits(call, "too many calls by this user: try again in a second");
}

void BusFront::read(uid_t user, Request request) {
    // Both are looked at again when the answer is there. What will be refused then is not worked out.
    const auto share = [told = told_, user](std::size_t bytes) {
        return told->take(user, RateLimit::Clock::now(), static_cast<double>(bytes));
    };
    if (!request.call.has_room())
        return fail_for_limits(request.call, "earlier answers still wait to be read");
    if (!share(0)) return fail_for_limits(request.call, told_enough);
    request.call.limit_to(share);
    const auto key = std::to_string(static_cast<int>(request.method)) + " " + request.argument;
    const auto build = [&](app::OwnedAnswer answer) {
        runner_.read(request.method, request.argument, std::move(answer));
    };
    answers_.ask(key, build, user, std::move(request.call));
}

void BusFront::forget() {
    polkit_.forget();
    users_.forget();
}

} // namespace affinityd::control
