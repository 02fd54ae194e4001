// SPDX-License-Identifier: Apache-2.0
#include "control/sender_users.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::control {

namespace {

constexpr std::size_t most_waiting = 256;
constexpr std::size_t most_known = 256;
constexpr std::uint64_t patience_usec = 25'000'000;

} // namespace

bool SenderUsers::find(sd_bus* bus, const std::string& sender, Found found) {
    if (const auto known = known_.find(sender); known != known_.end()) {
        found(known->second);
        return true;
    }
    if (bus == nullptr || waiting_ >= most_waiting) return false;
    // A second question would be answered after the sender is known: a later request would overtake its own.
    if (const auto asked = std::ranges::find(open_, sender, &Question::sender); asked != open_.end())
        asked->waiting.push_back(std::move(found));
    else if (!ask(bus, sender, std::move(found)))
        return false;
    ++waiting_;
    return true;
}

bool SenderUsers::ask(sd_bus* bus, const std::string& sender, Found found) {
    auto& question = open_.emplace_back(Question{this, sender, {}, nullptr, {}});
    question.self = std::prev(open_.end());
    question.waiting.push_back(std::move(found));
    sd_bus_message* raw = nullptr;
    sd_bus_slot* slot = nullptr;
    int status = sd_bus_message_new_method_call(bus, &raw, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                                "org.freedesktop.DBus", "GetConnectionUnixUser");
    const Message call(raw);
    if (status >= 0) status = sd_bus_message_append(raw, "s", sender.c_str());
    if (status >= 0) status = sd_bus_call_async(bus, &slot, raw, on_reply, &question, patience_usec);
    question.slot.reset(slot);
    if (status >= 0) return true;
    open_.pop_back();
    return false;
}

int SenderUsers::on_reply(sd_bus_message* reply, void* userdata, sd_bus_error*) {
    auto& question = *static_cast<Question*>(userdata);
    std::optional<uid_t> user;
    if (std::uint32_t value = 0;
        sd_bus_message_is_method_error(reply, nullptr) == 0 && sd_bus_message_read(reply, "u", &value) > 0)
        user = value;
    auto& asker = *question.asker;
    if (user) asker.learn(question.sender, *user);
    auto waiting = std::move(question.waiting);
    asker.waiting_ -= waiting.size();
    asker.open_.erase(question.self);
    for (auto& found : waiting)
        found(user);
    return 0;
}

void SenderUsers::learn(const std::string& sender, uid_t user) {
    // Who comes again asks the bus again: that is cheaper than to keep an order of age.
    if (known_.size() >= most_known) known_.clear();
    known_.emplace(sender, user);
}

void SenderUsers::forget() {
    open_.clear();
    waiting_ = 0;
    known_.clear();
}

} // namespace affinityd::control
