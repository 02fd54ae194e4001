// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/present/output.hpp"

#include "base/escape.hpp"
#include "host/file.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityctl {

namespace {

/// Also as /dev/stdout: opened anew, a file would be written from its beginning, over the text.
bool is_standard_output(const std::string& path) {
    if (path == "-") return true;
    struct stat named {
    }, output{};
    return ::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &output) == 0 &&
           named.st_dev == output.st_dev && named.st_ino == output.st_ino;
}

/// Another name of it may be /dev/null, which takes both.
bool mixes(const std::string& path) {
    struct stat output {};
    const bool is_null =
        ::fstat(STDOUT_FILENO, &output) == 0 && S_ISCHR(output.st_mode) && ::isatty(STDOUT_FILENO) == 0;
    return path == "-" || (is_standard_output(path) && !is_null);
}

// F: end if it fits; R: colours; S: cut long lines; X: leave the text on the screen; M: where one is; K: end
// on an interrupt.
constexpr const char* less_options = "FRSXMK";

bool is_somebody_elses_environment() {
    return std::getenv("SUDO_UID") != nullptr || ::geteuid() != ::getuid();
}

/// "": none.
std::string pager_command() {
    const char* terminal = std::getenv("TERM");
    if (terminal == nullptr || std::string_view(terminal) == "dumb") return "";
    if (is_somebody_elses_environment()) return "less";
    for (const char* name : {"AFFINITYCTL_PAGER", "PAGER"})
        if (const char* value = std::getenv(name)) return std::string_view(value) == "cat" ? "" : value;
    return "less";
}

/// False: no pager could show it.
bool show_in_pager(const std::string& text, const std::string& command) {
    ::setenv("LESS", less_options, 1); // else a short text may wait for a key
    if (is_somebody_elses_environment()) ::setenv("LESSSECURE", "1", 1);
    std::fflush(stdout);
    FILE* pager = ::popen(command.c_str(), "we");
    if (pager == nullptr) return false;
    const auto before = std::signal(SIGPIPE, SIG_IGN);   // the reader has seen enough
    const auto interrupt = std::signal(SIGINT, SIG_IGN); // it is the pager's
    std::fwrite(text.data(), 1, text.size(), pager);
    const int status = ::pclose(pager);
    (void)std::signal(SIGPIPE, before);
    (void)std::signal(SIGINT, interrupt);
    constexpr int not_started = 126; // and 127: what a shell says of a program that it cannot run
    return !(WIFEXITED(status) && WEXITSTATUS(status) >= not_started);
}

/// "web1, 2026-11-28 18:40, affinityd 0.2"
std::string source_of(const Globals& globals) {
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    const auto recording = std::filesystem::path(globals.root).lexically_normal();
    const std::time_t now = std::time(nullptr);
    tm parts{};
    std::array<char, 32> date{};
    std::strftime(date.data(), date.size(), "%Y-%m-%d %H:%M", ::localtime_r(&now, &parts));
    return fmt::format("{}, {}, affinityd " AFFINITYD_VERSION,
                       globals.is_recorded()  ? "recording " + recording.filename().string()
                       : globals.host.empty() ? std::string(host.data())
                                              : globals.host,
                       date.data());
}

} // namespace

void print_text(const std::string& text, bool may_page) {
    const auto command = may_page && ::isatty(STDOUT_FILENO) == 1 ? pager_command() : "";
    if (!command.empty() && show_in_pager(text, command)) return;
    fmt::print("{}", text);
}

std::expected<void, CallError> check_picture(const Globals& globals, const std::string& path) {
    if (globals.json && mixes(path))
        return std::unexpected(
            CallError{exit_usage, fmt::format("--json and --svg {} both write to standard output", path)});
    if (path.empty() || is_standard_output(path)) return {};
    const auto checked = affinityd::host::check_replaceable(path);
    if (!checked) return std::unexpected(CallError{exit_failure, checked.error().to_string()});
    return {};
}

int write_picture(const std::string& path, const std::string& document) {
    if (is_standard_output(path)) {
        fmt::print("{}", document);
        return exit_ok;
    }
    auto written = affinityd::host::check_replaceable(path);
    if (written) written = affinityd::host::replace_file(path, document);
    return written ? exit_ok : complain({}, {exit_failure, written.error().to_string()});
}

int complain(const Globals& globals, const CallError& error) {
    fmt::print(stderr, "affinityctl: {}\n", affinityd::escaped_lines(error.message));
    if (globals.json) fmt::print("{}\n", dump({{"ok", false}, {"message", error.message}}));
    return error.code;
}

int show(const Globals& globals, Outcome outcome) {
    if (!outcome) return complain(globals, outcome.error());
    for (const auto& complaint : outcome->complaints)
        fmt::print(stderr, "{}\n", affinityd::escaped_lines(complaint));
    if (outcome->is_silent) return outcome->code;
    if (globals.json)
        fmt::print("{}\n", dump(outcome->value, outcome->indent));
    else if (outcome->picture != "-")
        print_text(to_text(*outcome, Page::of_output(globals.color, outcome->by_columns)), outcome->may_page);
    if (outcome->picture.empty()) return outcome->code;
    if (outcome->source.empty()) outcome->source = source_of(globals);
    const int written =
        write_picture(outcome->picture, outcome->is_page ? to_html(*outcome) : to_svg(*outcome));
    return written != exit_ok ? written : outcome->code;
}

} // namespace affinityctl
