// SPDX-License-Identifier: Apache-2.0
#include "control/call.hpp"

#include "base/clock.hpp"
#include "base/escape.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace affinityd::control {

namespace {

constexpr std::chrono::seconds patience{5};

} // namespace

Outbox::Outbox(sd_event* event, sd_bus* bus, std::uint64_t most, std::function<void()> end)
    : event_(event), bus_(sd_bus_ref(bus)), most_(most), end_(std::move(end)) {}

std::uint64_t Outbox::waiting() const {
    std::uint64_t messages = 0;
    return sd_bus_get_n_queued_write(bus_.get(), &messages) < 0 ? 0 : messages;
}

bool Outbox::is_full() const {
    const auto owed =
        static_cast<std::uint64_t>(weak_from_this().use_count()) - 1; // its connection holds it, too
    return waiting() + owed >= most_;
}

void Outbox::sent() {
    ++sent_;
    const auto now_waiting = waiting();
    if (now_waiting == 0 || timer_) return;
    left_ = sent_ - std::min(sent_, now_waiting);
    sd_event_source* source = nullptr;
    if (sd_event_add_time_relative(event_, &source, CLOCK_MONOTONIC, usec_of(patience), 0, on_look, this) >=
        0)
        timer_.reset(source);
}

int Outbox::on_look(sd_event_source* source, std::uint64_t, void* userdata) {
    auto& self = *static_cast<Outbox*>(userdata);
    const auto waiting = self.waiting();
    const auto left = self.sent_ - std::min(self.sent_, waiting);
    if (waiting > 0 && left == self.left_) {
        self.timer_.reset();
        self.end_();
    } else if (waiting > 0) {
        self.left_ = left;
        sd_event_source_set_time_relative(source, usec_of(patience));
        sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    } else {
        self.timer_.reset();
    }
    return 0;
}

Call::~Call() {
    if (message_)
        fail(SD_BUS_ERROR_NO_REPLY, "the daemon ended or gave the request up before it was answered");
}

void Call::reply(const std::string& text) {
    const Message message = std::move(message_);
    const auto outbox = std::move(outbox_);
    if (outbox && !outbox->has_room()) return;
    // D-Bus carries UTF-8 only, and the faults in these texts quote policy files, which are any bytes.
    const auto valid = valid_utf8(text);
    sd_bus_message* raw = nullptr;
    int status = sd_bus_message_new_method_return(message.get(), &raw);
    const Message answer(raw);
    // An answer may have megabytes, and sd_bus_message_append() would look at each byte of it once more.
    char* space = nullptr;
    if (status >= 0) status = sd_bus_message_append_string_space(raw, valid.size(), &space);
    if (status < 0) return;
    std::ranges::copy(valid, space);
    sd_bus_send(nullptr, raw, nullptr);
    if (outbox) outbox->sent();
}

void Call::reply(const Result<std::string>& result) {
    if (result) return reply(*result);
    fail("org.affinityd.Error.Failed", result.error().to_string());
}

void Call::fail(const char* name, const std::string& message) {
    const Message call = std::move(message_);
    const auto outbox = std::move(outbox_);
    if (outbox && !outbox->has_room()) return;
    sd_bus_reply_method_errorf(call.get(), name, "%s", valid_utf8(message).c_str());
    if (outbox) outbox->sent();
}

std::string Call::sender() const {
    const char* name = sd_bus_message_get_sender(message_.get());
    return name == nullptr ? "" : name;
}

bool Call::allows_interaction() const {
    return sd_bus_message_get_allow_interactive_authorization(message_.get()) > 0;
}

} // namespace affinityd::control
