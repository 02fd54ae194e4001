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
      rate_(limits.calls_per_second, limits.calls_at_once), polkit_(connection_, limits.polkit),
      answers_(event, std::chrono::seconds(1)) {}

int BusFront::serve(sd_bus* bus, std::shared_ptr<Outbox> outbox) {
    outbox_ = std::move(outbox);
    return add_manager_object(bus, *this);
}

void BusFront::take(Request request) {
    request.call.send_through(outbox_);
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
    if (!rate_.take(user, RateLimit::Clock::now()))
        return fail_for_limits(request.call, "too many calls by this user: try again in a second");
    if (request.argument.size() > longest_argument)
        return request.call.fail(SD_BUS_ERROR_INVALID_ARGS, "the argument is too long");
    if (only_reads(request.method)) return read(user, std::move(request));
    polkit_.ask(
        std::move(request.call), user,
        [this, method = request.method, argument = request.argument, until = request.until](Call call) {
            runner_.run({method, argument, std::move(call), until});
        });
}

void BusFront::read(uid_t user, Request request) {
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
