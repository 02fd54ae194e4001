// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/ask.hpp"

#include "affinityctl/present/document.hpp"
#include "affinityctl/present/output.hpp"

#include <CLI/CLI.hpp>
#include <string_view>
#include <utility>

namespace affinityctl {

namespace {
constexpr const char* no_root = "--root names a recorded machine, and this is done on the running one only: "
                                "leave --root out";
/// A pass over a large and busy machine may take minutes, and goes on when its caller has gone.
constexpr std::chrono::minutes longest_work{10};

constexpr Field counted_fields[] = {
    {"threads", "", "count", "threads"},
    {"interrupts", "", "count", "interrupts"},
    {"steering", "", "count", "steering settings"},
    {"units", "", "count", "units"},
};
constexpr Field policy_fields[] = {
    {"name", "", "text", "its name"},
    {"placed", "", "object", "changes that were made", counted_fields},
    {"in_place", "", "object", "those that needed no change", counted_fields},
    {"put_back", "", "object", "those that were restored", counted_fields},
    {"kept_off", "", "count", "threads of others that left its exclusive CPUs"},
    {"left", "", "count", "masks left as another program has set them"},
    {"put_off", "", "count", "tasks that are not placed for now"},
    {"refused", "", "count", "changes that were refused"},
    {"not_put_back", "", "count", "those that could not be restored"},
    {"reason", "", "text?", "the first of the reasons why something was refused or not restored"},
};
constexpr Field order_fields[] = {
    {"ok", "", "flag", "all of it was done"},
    {"dry_run", "", "flag*", "nothing was changed"},
    {"message", "", "text", "the report, in lines"},
    {"policies", "", "object[]", "the report by policy", policy_fields},
};
} // namespace

const Fields order_answer = order_fields;

std::unexpected<CallError> failed(Exit code, std::string message) {
    return std::unexpected(CallError{code, std::move(message)});
}

std::unexpected<CallError> failed(const affinityd::Error& error) {
    return failed(exit_failure, error.to_string());
}

std::expected<std::string, CallError> ask_daemon(const Globals& globals, const char* method,
                                                 const std::vector<std::string>& arguments,
                                                 const Patience& patience) {
    if (globals.is_recorded()) return std::unexpected(CallError{exit_usage, no_root});
    return call_daemon(globals.runtime_dir, method, arguments, patience);
}

nlohmann::json status_if_any(const Globals& globals) {
    return ask_daemon_object(globals, "GetStatus").value_or(nlohmann::json());
}

std::expected<void, CallError> check_is_live(const Globals& globals) {
    if (globals.is_recorded()) return failed(exit_usage, no_root);
    return {};
}

std::expected<nlohmann::json, CallError> ask_daemon_object(const Globals& globals, const char* method,
                                                           const std::vector<std::string>& arguments) {
    const auto answer = ask_daemon(globals, method, arguments);
    if (!answer) return std::unexpected(answer.error());
    auto value = nlohmann::json::parse(*answer, nullptr, false);
    if (value.is_object()) return value;
    return std::unexpected(
        CallError{exit_failure, "the daemon's answer cannot be read: is it of another version?"});
}

Outcome tell(const Globals& globals, const Order& order) {
    std::vector<std::string> arguments;
    if (order.no_block)
        arguments = {order.method, order.argument};
    else if (std::string_view(order.method) == "Release")
        arguments = {order.argument};
    const auto answer =
        ask_daemon(globals, order.no_block ? "Begin" : order.method, arguments,
                   {order.no_block ? Patience{}.time : longest_work, order.no_block ? "" : order.doing});
    Document document;
    if (!answer) {
        document.value = record(order_answer, {false, nlohmann::json(nlohmann::json::value_t::discarded),
                                               answer.error().message, nlohmann::json::array()});
        document.complaints.push_back("affinityctl: " + answer.error().message);
        document.code = answer.error().code;
        return document;
    }
    document.value = nlohmann::json::parse(*answer, nullptr, false);
    const auto message = text(document.value, "message");
    if (!message.empty()) document.line(message);
    document.code = document.value.is_object() && document.value.value("ok", false) ? exit_ok : exit_failure;
    return document;
}

void add_no_block(CLI::App& verb, bool& no_block) {
    verb.add_flag("--no-block", no_block, "have it begun, and do not wait for its end");
}

} // namespace affinityctl
