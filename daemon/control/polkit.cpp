// SPDX-License-Identifier: Apache-2.0
#include "control/polkit.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>
#include <utility>

namespace affinityd::control {

namespace {

constexpr const char* service = "org.freedesktop.PolicyKit1";
constexpr const char* object = "/org/freedesktop/PolicyKit1/Authority";
constexpr const char* interface = "org.freedesktop.PolicyKit1.Authority";
constexpr const char* needed = "changing affinity needs root or the polkit action org.affinityd.manage";

/// Replies to a call that polkit did not allow. `is_challenge`: a person could allow it.
void deny(Call& call, bool is_challenge) {
    if (is_challenge && !call.allows_interaction())
        call.fail(SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                  std::string(needed) + ", which asks for a password");
    else
        call.fail(SD_BUS_ERROR_ACCESS_DENIED, needed);
}

/// Replies where polkit gave no verdict.
void deny_without_verdict(Call& call, sd_bus_message* reply) {
    if (sd_bus_message_is_method_error(reply, SD_BUS_ERROR_NO_REPLY) > 0 ||
        sd_bus_message_is_method_error(reply, SD_BUS_ERROR_TIMEOUT) > 0)
        return call.fail(SD_BUS_ERROR_TIMEOUT, std::string(needed) + ", and polkit does not answer");
    const auto* error = sd_bus_message_get_error(reply);
    const char* why = error == nullptr || error->message == nullptr ? "unreadable answer" : error->message;
    call.fail(SD_BUS_ERROR_ACCESS_DENIED, std::string(needed) + ", and polkit said: " + why);
}

} // namespace

bool Polkit::has_room(uid_t user) const {
    const auto users = std::ranges::count(open_, user, &Question::user);
    return open_.size() < limits_.in_all && static_cast<std::size_t>(users) < limits_.per_user;
}

void Polkit::ask(Call call, uid_t user, Allowed allowed) {
    if (!has_room(user)) return call.refuse("too many requests wait for polkit");
    auto& question = open_.emplace_back(this, std::move(call), user, std::move(allowed));
    question.self = std::prev(open_.end());
    sd_bus* bus = bus_.connection();
    if (bus != nullptr && send(bus, question) >= 0) return;
    question.call.fail(SD_BUS_ERROR_ACCESS_DENIED, std::string(needed) + ", and polkit cannot be asked");
    open_.pop_back();
}

int Polkit::send(sd_bus* bus, Question& question) const {
    const bool may_prompt = question.call.allows_interaction();
    sd_bus_message* raw = nullptr;
    int status = sd_bus_message_new_method_call(bus, &raw, service, object, interface, "CheckAuthorization");
    const Message message(raw);
    constexpr const char* cannot_be_cancelled = "";
    if (status >= 0)
        status = sd_bus_message_append(raw, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
                                       question.call.sender().c_str(), manage_action, 0, may_prompt ? 1U : 0U,
                                       cannot_be_cancelled);
    sd_bus_slot* slot = nullptr;
    if (status >= 0)
        status = sd_bus_call_async(bus, &slot, raw, on_answer, &question,
                                   usec_of(may_prompt ? limits_.person : limits_.patience));
    question.slot.reset(slot);
    return status;
}

int Polkit::on_answer(sd_bus_message* reply, void* userdata, sd_bus_error*) {
    auto& question = *static_cast<Question*>(userdata);
    auto& open = question.asker->open_;
    auto call = std::move(question.call);
    auto allowed = std::move(question.allowed);
    open.erase(question.self);
    int authorized = 0;
    int challenge = 0;
    if (sd_bus_message_is_method_error(reply, nullptr) > 0 ||
        sd_bus_message_enter_container(reply, 'r', "bba{ss}") <= 0 ||
        sd_bus_message_read(reply, "bb", &authorized, &challenge) <= 0)
        deny_without_verdict(call, reply);
    else if (authorized == 0)
        deny(call, challenge != 0);
    else
        allowed(std::move(call));
    return 0;
}

} // namespace affinityd::control
