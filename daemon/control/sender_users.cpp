// SPDX-License-Identifier: Apache-2.0
#include "control/sender_users.hpp"

#include <utility>

namespace affinityd::control {

namespace {

constexpr std::size_t most_open = 256;

} // namespace

bool SenderUsers::find(sd_bus* bus, const std::string& sender, Found found) {
    if (bus == nullptr || open_.size() >= most_open) return false;
    auto& question = open_.emplace_back(this, std::move(found));
    question.self = std::prev(open_.end());
    sd_bus_slot* slot = nullptr;
    const int status = sd_bus_call_method_async(bus, &slot, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                                "org.freedesktop.DBus", "GetConnectionUnixUser", on_reply,
                                                &question, "s", sender.c_str());
    question.slot.reset(slot);
    if (status < 0) open_.pop_back();
    return status >= 0;
}

int SenderUsers::on_reply(sd_bus_message* reply, void* userdata, sd_bus_error*) {
    auto& question = *static_cast<Question*>(userdata);
    std::optional<uid_t> user;
    if (std::uint32_t value = 0;
        sd_bus_message_is_method_error(reply, nullptr) == 0 && sd_bus_message_read(reply, "u", &value) > 0)
        user = value;
    auto found = std::move(question.found);
    question.asker->open_.erase(question.self);
    found(user);
    return 0;
}

} // namespace affinityd::control
