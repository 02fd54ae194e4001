// SPDX-License-Identifier: Apache-2.0
#include "control/calls.hpp"

#include "base/clock.hpp"
#include "base/escape.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
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

namespace {

template <Method method>
int on_call(sd_bus_message* message, void* userdata, sd_bus_error*) {
    const char* argument = "";
    if (sd_bus_message_has_signature(message, "s") > 0)
        if (const int status = sd_bus_message_read(message, "s", &argument); status < 0) return status;
    static_cast<Front*>(userdata)->take({method, argument, Call(message)});
    return 1;
}

/// A method whose arguments are texts, as many as the `types` of its row of the table.
template <Method method>
int on_texts(sd_bus_message* message, void* userdata, sd_bus_error*) {
    std::vector<std::string> texts;
    for (const char* text = nullptr; sd_bus_message_at_end(message, 1) == 0; texts.emplace_back(text))
        if (const int status = sd_bus_message_read(message, "s", &text); status < 0) return status;
    Request request{method, texts.front(), Call(message)};
    request.more.assign(texts.begin() + 1, texts.end());
    static_cast<Front*>(userdata)->take(std::move(request));
    return 1;
}

constexpr std::array changing{std::pair(std::string_view("Reload"), Method::reload),
                              std::pair(std::string_view("Release"), Method::release),
                              std::pair(std::string_view("Apply"), Method::apply),
                              std::pair(std::string_view("Measure"), Method::measure)};

/// Begins a method that changes something; the reply does not wait for its end.
int on_begin(sd_bus_message* message, void* userdata, sd_bus_error* fault) {
    const char* name = "";
    const char* argument = "";
    if (const int status = sd_bus_message_read(message, "ss", &name, &argument); status < 0) return status;
    for (const auto& [known, method] : changing) {
        if (name != known) continue;
        static_cast<Front*>(userdata)->take(
            {method, method == Method::release ? argument : "", Call(message), core::Until::begun});
        return 1;
    }
    return sd_bus_error_set(fault, SD_BUS_ERROR_INVALID_ARGS,
                            "the first argument is Reload, Release, Apply or Measure");
}

/// Fronts decide which user may call which method, not the uid rule of the library.
constexpr std::uint64_t open_to_all = SD_BUS_VTABLE_UNPRIVILEGED;

const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("GetStatus", "", "s", on_call<Method::get_status>, open_to_all),
    SD_BUS_METHOD("GetPlan", "", "s", on_call<Method::get_plan>, open_to_all),
    SD_BUS_METHOD("GetHistory", "s", "s", on_call<Method::get_history>, open_to_all),
    SD_BUS_METHOD("GetNames", "", "s", on_call<Method::get_names>, open_to_all),
    SD_BUS_METHOD("GetTrials", "", "s", on_call<Method::get_trials>, open_to_all),
    SD_BUS_METHOD("Explain", "s", "s", on_call<Method::explain>, open_to_all),
    SD_BUS_METHOD("Reload", "", "s", on_call<Method::reload>, open_to_all),
    SD_BUS_METHOD("Release", "s", "s", on_call<Method::release>, open_to_all),
    SD_BUS_METHOD("Apply", "", "s", on_call<Method::apply>, open_to_all),
    SD_BUS_METHOD("Measure", "", "s", on_call<Method::measure>, open_to_all),
    SD_BUS_METHOD("Try", "sss", "s", on_texts<Method::try_policy>, open_to_all),
    SD_BUS_METHOD("EndTrial", "ss", "s", on_texts<Method::end_trial>, open_to_all),
    SD_BUS_METHOD("Acknowledge", "ss", "s", on_texts<Method::acknowledge>, open_to_all),
    SD_BUS_METHOD("Begin", "ss", "s", on_begin, open_to_all),
    SD_BUS_VTABLE_END,
};

} // namespace

int add_manager_object(sd_bus* bus, Front& front) {
    return sd_bus_add_object_vtable(bus, nullptr, object_path, interface_name, vtable, &front);
}

void CommandRunner::read(Method method, const std::string& argument, core::OwnedAnswer answer) {
    if (method == Method::get_status) return commands_.status(std::move(answer));
    if (method == Method::get_plan) return commands_.plan(std::move(answer));
    if (method == Method::explain) return commands_.explain(argument, std::move(answer));
    if (method == Method::get_trials)
        return commands_.run({"GetTrials", {}, 0, [to = std::move(answer)](Result<std::string> text) mutable {
                                  if (!text) return to(std::unexpected(std::move(text.error())));
                                  to(OwnedText(std::move(*text)));
                              }});
    auto text = method == Method::get_names ? commands_.names() : commands_.history(argument);
    if (!text) return answer(std::unexpected(std::move(text.error())));
    answer(OwnedText(std::move(*text)));
}

void CommandRunner::run(Request request) {
    auto& [method, argument, call, until, user, more] = request;
    if (only_reads(method))
        return read(method, argument, [to = std::move(call)](const Result<OwnedText>& text) mutable {
            to.reply(text ? Result<std::string>(text->full()) : std::unexpected(text.error()));
        });
    auto answer = [to = std::move(call)](const Result<std::string>& text) mutable { to.reply(text); };
    switch (method) {
    case Method::reload:
        return commands_.reload(std::move(answer), until, core::ReloadReason::asked);
    case Method::release:
        return commands_.release(argument, user, std::move(answer), until);
    case Method::apply:
        return commands_.apply(std::move(answer), until);
    case Method::try_policy:
    case Method::end_trial:
    case Method::acknowledge: {
        const char* verb = method == Method::try_policy  ? "Try"
                           : method == Method::end_trial ? "EndTrial"
                                                         : "Acknowledge";
        more.insert(more.begin(), argument);
        return commands_.run({verb, std::move(more), user, std::move(answer)});
    }
    default:
        return measure_(std::move(answer), until);
    }
}

} // namespace affinityd::control
