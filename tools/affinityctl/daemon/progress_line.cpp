// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/daemon/progress_line.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityctl {

namespace {

constexpr std::chrono::milliseconds unseen{500};

/// One that can wipe a line.
bool has_terminal() {
    const char* terminal = std::getenv("TERM");
    return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

} // namespace

std::string progress_text(const std::string& doing, std::chrono::milliseconds elapsed) {
    if (doing.empty() || elapsed < unseen) return {};
    return fmt::format("{}: {} s (Ctrl-C ends the waiting only)", doing, elapsed.count() / 1000);
}

ProgressLine::ProgressLine(std::string doing) : doing_(has_terminal() ? std::move(doing) : "") {}

void ProgressLine::go_on() {
    auto text = progress_text(doing_, std::chrono::duration_cast<std::chrono::milliseconds>(elapsed()));
    if (text == shown_) return;
    shown_ = std::move(text);
    std::fputs(("\r" + shown_ + "\033[K").c_str(), stderr); // which throws nothing if the terminal has gone
    std::fflush(stderr);
}

ProgressLine::~ProgressLine() {
    if (shown_.empty()) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
}

} // namespace affinityctl
