// SPDX-License-Identifier: Apache-2.0
#include "control/polkit.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace affinityd::control {

namespace {

constexpr const char* service = "org.freedesktop.PolicyKit1";
constexpr const char* object = "/org/freedesktop/PolicyKit1/Authority";
constexpr const char* interface = "org.freedesktop.PolicyKit1.Authority";
constexpr const char* needed = "changing affinity needs root or the polkit action org.affinityd.manage";

struct Verdict {
    bool is_readable = false;
    bool is_authorized = false;
    bool is_challenge = false; ///< a person could authorize it, if the caller let polkit ask
};

Verdict read_verdict(sd_bus_message* reply) {
    int authorized = 0;
    int challenge = 0;
    if (sd_bus_message_is_method_error(reply, nullptr) > 0 ||
        sd_bus_message_enter_container(reply, 'r', "bba{ss}") <= 0 ||
        sd_bus_message_read(reply, "bb", &authorized, &challenge) <= 0)
        return {};
    return {true, authorized != 0, challenge != 0};
}

} // namespace

bool Polkit::has_room(uid_t user) const {
    const auto users = std::ranges::count(open_, user, &Question::user);
    return open_.size() < limits_.in_all && static_cast<std::size_t>(users) < limits_.per_user;
}

void Polkit::ask(Call call, uid_t user, Allowed allowed) {
    if (!has_room(user)) return call.refuse("too many requests wait for polkit");
    auto& question = open_.emplace_back(*this, std::move(call), user, std::move(allowed));
    question.self = std::prev(open_.end());
    question.cancellation = "affinityd-" + std::to_string(++asked_);
    sd_bus* bus = bus_.connection();
    int status = bus == nullptr ? -ENOTCONN : watch_caller(bus, question);
    if (status >= 0) status = send(bus, question);
    if (status >= 0) return;
    question.call.fail(SD_BUS_ERROR_ACCESS_DENIED, std::string(needed) + ", and polkit cannot be asked");
    open_.pop_back();
}

int Polkit::send(sd_bus* bus, Question& question) const {
    const bool may_prompt = question.call.allows_interaction();
    sd_bus_message* raw = nullptr;
    int status = sd_bus_message_new_method_call(bus, &raw, service, object, interface, "CheckAuthorization");
    const Message message(raw);
    if (status >= 0)
        status = sd_bus_message_append(raw, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
                                       question.call.sender().c_str(), manage_action, 0, may_prompt ? 1U : 0U,
                                       question.cancellation.c_str());
    sd_bus_slot* slot = nullptr;
    if (status >= 0)
        status = sd_bus_call_async(bus, &slot, raw, on_answer, &question,
                                   usec_of(may_prompt ? limits_.person : limits_.patience));
    question.slot.reset(slot);
    return status;
}

int Polkit::watch_caller(sd_bus* bus, Question& question) {
    const std::string rule = "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                             "member='NameOwnerChanged',arg0='" +
                             question.call.sender() + "',arg2=''";
    sd_bus_slot* slot = nullptr;
    const int status =
        sd_bus_add_match_async(bus, &slot, rule.c_str(), on_caller_gone, on_watched, &question);
    question.leaving.reset(slot);
    return status;
}

/// Without this callback sd-bus ends the connection when the bus refuses a subscription.
int Polkit::on_watched(sd_bus_message*, void*, sd_bus_error*) { return 0; }

int Polkit::on_caller_gone(sd_bus_message*, void* userdata, sd_bus_error*) {
    auto& question = *static_cast<Question*>(userdata);
    cancel(question);
    question.asker.open_.erase(question.self); // no caller reads the reply that this sends
    return 0;
}

/// Closes the password dialog, if there is one.
void Polkit::cancel(const Question& question) {
    sd_bus_message* raw = nullptr;
    sd_bus* bus = sd_bus_slot_get_bus(question.slot.get());
    if (sd_bus_message_new_method_call(bus, &raw, service, object, interface, "CancelCheckAuthorization") < 0)
        return;
    const Message message(raw);
    if (sd_bus_message_append(raw, "s", question.cancellation.c_str()) >= 0 &&
        sd_bus_message_set_expect_reply(raw, 0) >= 0)
        sd_bus_send(bus, raw, nullptr);
}

int Polkit::on_answer(sd_bus_message* reply, void* userdata, sd_bus_error*) {
    auto& question = *static_cast<Question*>(userdata);
    auto& open = question.asker.open_;
    const auto verdict = read_verdict(reply);
    if (verdict.is_authorized) {
        auto allowed = std::move(question.allowed);
        auto call = std::move(question.call);
        open.erase(question.self);
        allowed(std::move(call));
        return 0;
    }
    if (verdict.is_challenge && !question.call.allows_interaction())
        question.call.fail(SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                           std::string(needed) + ", which asks for a password");
    else if (verdict.is_readable)
        question.call.fail(SD_BUS_ERROR_ACCESS_DENIED, needed);
    else
        refuse(question, reply);
    open.erase(question.self);
    return 0;
}

/// Replies where polkit gave no verdict.
void Polkit::refuse(Question& question, sd_bus_message* reply) {
    const bool is_silent = sd_bus_message_is_method_error(reply, SD_BUS_ERROR_NO_REPLY) > 0 ||
                           sd_bus_message_is_method_error(reply, SD_BUS_ERROR_TIMEOUT) > 0;
    if (is_silent) {
        cancel(question);
        return question.call.fail(SD_BUS_ERROR_TIMEOUT, std::string(needed) + ", and polkit does not answer");
    }
    const auto* error = sd_bus_message_get_error(reply);
    const char* why = error == nullptr || error->message == nullptr ? "unreadable answer" : error->message;
    question.call.fail(SD_BUS_ERROR_ACCESS_DENIED, std::string(needed) + ", and polkit said: " + why);
}

} // namespace affinityd::control
