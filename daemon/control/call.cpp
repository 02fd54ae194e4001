// SPDX-License-Identifier: Apache-2.0
#include "control/call.hpp"

#include "base/utf8.hpp"

#include <algorithm>

namespace affinityd::control {

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
    if (outbox) outbox->sent(valid.size());
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
    if (outbox) outbox->sent(message.size());
}

std::string Call::sender() const {
    const char* name = sd_bus_message_get_sender(message_.get());
    return name == nullptr ? "" : name;
}

bool Call::allows_interaction() const {
    return sd_bus_message_get_allow_interactive_authorization(message_.get()) > 0;
}

void fail_for_limits(Call& call, const std::string& what) { call.fail(SD_BUS_ERROR_LIMITS_EXCEEDED, what); }

} // namespace affinityd::control
