// SPDX-License-Identifier: Apache-2.0
#include "control/bus_front.hpp"

#include <iterator>
#include <utility>

#include <unistd.h>

namespace affinityd::control {

namespace {

/// Of a policy, a process or an interface; what others call their things is shorter.
constexpr std::size_t longest_argument = 4096;
constexpr std::size_t most_senders = 256;
constexpr std::chrono::seconds kept{1};

void reply_to(Call& call, uid_t user, const Result<OwnedText>& answer) {
    call.reply(answer ? Result<std::string>(answer->seen_by(user)) : std::unexpected(answer.error()));
}

} // namespace

bool is_privileged_user(uid_t user) { return user == 0 || user == ::geteuid(); }

BusFront::BusFront(CommandRunner& runner, Polkit::Connection connection, const Limits& limits)
    : runner_(runner), connection_(std::move(connection)), limits_(limits),
      polkit_(connection_, limits.polkit) {}

int BusFront::serve(sd_bus* bus, std::shared_ptr<Outbox> outbox) {
    outbox_ = std::move(outbox);
    return add_manager_object(bus, *this);
}

void BusFront::take(Request request) {
    request.call.send_through(outbox_);
    auto* bus = connection_();
    if (bus == nullptr || senders_.size() >= most_senders)
        return request.call.refuse("too many callers at once, or the bus cannot be asked for their users");
    auto& sender = senders_.emplace_back(this, std::move(request));
    sender.self = std::prev(senders_.end());
    sd_bus_slot* slot = nullptr;
    const int status = sd_bus_call_method_async(bus, &slot, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                                "org.freedesktop.DBus", "GetConnectionUnixUser", on_sender,
                                                &sender, "s", sender.request.call.sender().c_str());
    sender.slot.reset(slot);
    if (status < 0) senders_.pop_back();
}

int BusFront::on_sender(sd_bus_message* reply, void* userdata, sd_bus_error*) {
    auto& sender = *static_cast<Sender*>(userdata);
    auto request = std::move(sender.request);
    auto& front = *sender.front;
    front.senders_.erase(sender.self);
    std::uint32_t user = 0;
    if (sd_bus_message_is_method_error(reply, nullptr) != 0 || sd_bus_message_read(reply, "u", &user) <= 0)
        request.call.fail(SD_BUS_ERROR_ACCESS_DENIED, "the caller's user is not known");
    else
        front.take_from(user, std::move(request));
    return 0;
}

void BusFront::take_from(uid_t user, Request request) {
    if (limits_.is_privileged(user)) return runner_.run(std::move(request));
    if (!limits_.may_ask(user))
        return request.call.refuse("too much is asked for by this user: try again in a second");
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
    const auto now = Clock::now();
    std::erase_if(*answers_,
                  [&](const auto& entry) { return entry.second.answer && entry.second.expires <= now; });
    const auto key = std::to_string(static_cast<int>(request.method)) + " " + request.argument;
    const auto [found, is_new] = answers_->try_emplace(key);
    if (found->second.answer) return reply_to(request.call, user, *found->second.answer);
    found->second.waiting.emplace_back(user, std::move(request.call));
    if (!is_new) return;
    // An answer that is given up is destroyed with its key, and those who wait are told so.
    auto question = std::shared_ptr<const std::string>(
        new std::string(key), [answers = std::weak_ptr(answers_)](const std::string* name) {
            const auto living = answers.lock();
            if (const auto open = living ? living->find(*name) : Answers::iterator{};
                living && open != living->end() && !open->second.answer)
                living->erase(open);
            delete name;
        });
    runner_.read(request.method, request.argument,
                 [answers = std::weak_ptr(answers_), question](Result<OwnedText> answer) {
                     const auto living = answers.lock();
                     const auto open = living ? living->find(*question) : Answers::iterator{};
                     if (!living || open == living->end()) return;
                     auto& shared = open->second;
                     shared.answer = std::move(answer);
                     shared.expires = Clock::now() + kept;
                     for (auto& [waiter, call] : std::exchange(shared.waiting, {}))
                         reply_to(call, waiter, *shared.answer);
                 });
}

void BusFront::forget() {
    polkit_.forget();
    senders_.clear();
}

} // namespace affinityd::control
