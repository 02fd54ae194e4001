// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/pager.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityctl {

namespace {

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

/// In the child: becomes the pager, or what needs none.
[[noreturn]] void become(const std::string& command, int input) {
    ::dup2(input, STDIN_FILENO);
    ::setenv("LESS", less_options, 1); // else a short text may wait for a key
    if (is_somebody_elses_environment()) ::setenv("LESSSECURE", "1", 1);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
}

void write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const auto written = ::write(fd, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return; // whoever reads has seen enough
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

/// False: nobody could show it.
bool page(const std::string& text, const std::string& command) {
    int ends[2];
    std::fflush(stdout);
    if (::pipe(ends) != 0) return false;
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(ends[1]);
        become(command, ends[0]);
    }
    ::close(ends[0]);
    const auto before = std::signal(SIGPIPE, SIG_IGN);
    const auto interrupt = std::signal(SIGINT, SIG_IGN); // it is the pager's
    if (child > 0) write_all(ends[1], text);
    ::close(ends[1]);
    int status = 0;
    while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    (void)std::signal(SIGPIPE, before);
    (void)std::signal(SIGINT, interrupt);
    constexpr int not_started = 126; // and 127: what a shell says of a program that it cannot run
    return child > 0 && !(WIFEXITED(status) && WEXITSTATUS(status) >= not_started);
}

} // namespace

void show(const std::string& text, bool may_page) {
    const auto command = may_page && ::isatty(STDOUT_FILENO) == 1 ? pager_command() : "";
    if (!command.empty() && page(text, command)) return;
    fmt::print("{}", text);
    std::fflush(stdout);
}

} // namespace affinityctl
