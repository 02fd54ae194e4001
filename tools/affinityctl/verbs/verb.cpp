// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/verb.hpp"

#include "policy/diagnostic.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

namespace affinityctl {

namespace {

constexpr const char* unreadable = "the daemon's answer cannot be read: is it of another version?";

/// No option of ssh(1) and nothing that a shell, which ssh may start for a proxy, would act upon.
bool is_host(std::string_view host) {
    constexpr std::string_view fine =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@:%[]";
    const auto name = host.substr(host.rfind('@') + 1); // npos + 1 is 0
    return !name.empty() && !host.starts_with('-') && !name.starts_with('-') &&
           host.find_first_not_of(fine) == std::string_view::npos;
}

/// Makes the only host the one that is asked.
void use_hosts(const Verb& verb, Globals& globals) {
    for (const auto& host : globals.hosts)
        if (!is_host(host)) throw CallError{exit_usage, "-H: this is no name of a host: " + host};
    if (globals.hosts.empty()) return;
    if (globals.is_recorded()) throw CallError{exit_usage, "--root and -H name different machines"};
    globals.host = globals.hosts.front();
    if (!verb.asks_hosts) need(check_is_here(globals, verb.name));
    if (globals.hosts.size() > 1 && std::string_view(verb.name) != "status")
        throw CallError{exit_usage, "several hosts are for status only"};
}

} // namespace

void check_root(const std::string& folder) {
    const std::filesystem::path root(folder);
    std::error_code code;
    const auto is_recording = [&](const std::filesystem::path& path) {
        return std::filesystem::exists(path / "proc", code) || std::filesystem::exists(path / "sys", code);
    };
    if (is_recording(root) || !std::filesystem::is_directory(root, code)) return;
    throw CallError{exit_usage,
                    fmt::format("--root {}: no recorded machine: neither proc nor sys is in it{}", folder,
                                is_recording(root / "..") ? "; both are one folder up" : "")};
}

CLI::App* add_verb(CLI::App& app, const Verb& verb, Globals& globals, int& status,
                   std::function<Outcome()> run) {
    auto* added = app.add_subcommand(verb.name, verb.summary);
    added->footer(fmt::format("Example:  {}\nManual:   {}{}", verb.example, verb.manual,
                              verb.answer.empty() ? "" : "; keys of --json: affinityctl-json(5)"));
    // Before anything that the verb requires is missed.
    if (!verb.answer.empty())
        added
            ->add_flag_callback(
                "--json-schema",
                [answer = verb.answer, is_list = verb.is_list] {
                    fmt::print("{}\n", dump(schema_of(answer, is_list), 2));
                    throw CLI::Success();
                },
                "print the JSON Schema of --json")
            ->trigger_on_parse()
            ->group("");
    // The callback of a verb also runs for its subcommands.
    added->callback([&globals, &status, added, verb, run = std::move(run)] {
        if (!added->get_subcommands().empty()) return;
        try {
            check_root(globals.root);
            use_hosts(verb, globals);
            status = show(globals, run());
        } catch (const CallError& error) {
            status = show(globals, std::unexpected(error));
        } catch (const nlohmann::json::exception&) {
            status = show(globals, failed(exit_failure, unreadable));
        }
    });
    return added;
}

std::unexpected<CallError> failed(Exit code, std::string message) {
    return std::unexpected(CallError{code, std::move(message)});
}

std::unexpected<CallError> failed(const affinityd::Error& error) {
    return failed(exit_failure, error.to_string());
}

std::string guess(std::string_view asked, const std::vector<std::string>& names) {
    const std::vector<std::string_view> words(names.begin(), names.end());
    const auto hint = affinityd::policy::did_you_mean(asked, words);
    return hint.empty() ? "" : " (" + hint + ")";
}

std::expected<void, CallError> check_is_live(const Globals& globals) {
    if (!globals.is_recorded()) return {};
    return failed(exit_usage, "--root names a recorded machine, and this is done on the running one only: "
                              "leave --root out");
}

std::expected<void, CallError> check_is_here(const Globals& globals, const std::string& verb) {
    if (globals.host.empty()) return {};
    return failed(exit_usage, fmt::format("-H asks the daemon there, and this reads files of the machine, or "
                                          "changes it: ssh {} affinityctl {}",
                                          globals.host, verb));
}

std::expected<std::string, CallError> ask_daemon(const Globals& globals, const char* method,
                                                 const std::vector<std::string>& arguments,
                                                 const Patience& patience) {
    if (const auto live = check_is_live(globals); !live) return std::unexpected(live.error());
    return call_daemon(globals, method, arguments, patience);
}

std::expected<nlohmann::json, CallError> ask_daemon_object(const Globals& globals, const char* method,
                                                           const std::vector<std::string>& arguments) {
    const auto answer = ask_daemon(globals, method, arguments);
    if (!answer) return std::unexpected(answer.error());
    auto value = nlohmann::json::parse(*answer, nullptr, false);
    if (value.is_object()) return value;
    return failed(exit_failure, unreadable);
}

nlohmann::json status_if_any(const Globals& globals) {
    return ask_daemon_object(globals, "GetStatus").value_or(nlohmann::json());
}

} // namespace affinityctl
