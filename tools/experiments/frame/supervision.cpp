// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame/supervision.hpp"

#include "base/clock.hpp"
#include "experiments/frame/timings.hpp"
#include "host/fd.hpp"
#include "host/signals.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace affinityd::experiments {

namespace {

constexpr int raised_nice = -10;
constexpr int redraw_ms = 200;
constexpr std::size_t bar_cells = 24, least_cells = 4;
constexpr int ended_by_signal = 128; ///< plus its number: as shells have it

/// Is there a terminal that can wipe a line?
bool can_draw() {
    const char* terminal = std::getenv("TERM");
    return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

std::size_t terminal_columns() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// The bar on standard error, wiped at the end. A terminal may go meanwhile, which is not to end what goes on
/// after SIGHUP: fmt::print would throw.
class Bar {
  public:
    Bar(std::string doing, bool wanted) : doing_(std::move(doing)), draws_(wanted && can_draw()) {}
    Bar(const Bar&) = delete;
    Bar& operator=(const Bar&) = delete;
    ~Bar() {
        if (drawn_) std::fputs("\r\033[K", stderr);
    }
    [[nodiscard]] bool draws() const { return draws_; }
    void draw(const Run& run) {
        if (!draws_ || run.all() == 0) return;
        const double share = std::min(1.0, static_cast<double>(run.done()) / static_cast<double>(run.all()));
        if (!since_) since_ = monotonic_seconds();
        const double spent = monotonic_seconds() - *since_;
        const double left = share > 0 ? spent / share - spent : 0;
        const auto text = progress_bar(doing_, share, left, terminal_columns() - 1);
        std::fputs(("\r" + text + "\033[K").c_str(), stderr);
        drawn_ = true;
    }

  private:
    std::string doing_;
    bool draws_, drawn_ = false;
    std::optional<double> since_; ///< it had come somewhere
};

/// The signals that end programs as a descriptor, while it lives.
class StopSignals {
  public:
    StopSignals() {
        const auto signals = host::stop_signals();
        ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
        fd_.reset(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    }
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;
    ~StopSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    [[nodiscard]] int fd() const { return fd_.get(); }
    /// The number of one that has come; 0: none has.
    [[nodiscard]] int take() const {
        signalfd_siginfo info{};
        return ::read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
    }

  private:
    sigset_t before_{};
    host::Fd fd_;
};

/// Until `ended` can be read. True: somebody wanted it to end sooner.
bool wait_for(const host::Fd& ended, const StopSignals& signals, Run& run, Bar& bar) {
    bool asked = false;
    for (;;) {
        bar.draw(run);
        pollfd files[] = {{ended.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
        ::poll(files, 2, bar.draws() ? redraw_ms : -1);
        if ((files[0].revents & POLLIN) != 0) return asked;
        const int number = signals.take();
        if (number == 0) continue;
        if (asked) ::_exit(ended_by_signal + number);
        asked = true;
        run.stop();
    }
}

} // namespace

std::string progress_bar(const std::string& doing, double share, double seconds_left, std::size_t columns) {
    const auto figures =
        fmt::format("{:.0f} %{}", share * 100, share > 0 ? ", " + time_words(seconds_left) + " left" : "");
    const std::size_t around = doing.size() + figures.size() + 4; // a space, brackets, a space
    const std::size_t cells = std::clamp(columns, around + least_cells, around + bar_cells) - around;
    const auto filled = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(cells));
    const auto text = fmt::format("{} [{}{}] {}", doing, std::string(filled, '#'),
                                  std::string(cells - filled, '-'), figures);
    return text.substr(0, columns);
}

Result<Ending> supervise(const Supervision& supervision, const std::function<void(Run&)>& experiment) {
    const StopSignals signals;
    const host::Fd ended(::eventfd(0, EFD_CLOEXEC));
    if (signals.fd() < 0 || !ended) return fail("cannot watch signals", {}, errno);
    Run run;
    std::atomic<int> refused{0}; // errno of a priority that is not granted
    std::jthread thread;
    try {
        const host::BlockedSignals blocked;
        thread = std::jthread([&] {
            if (supervision.wants_priority && ::setpriority(PRIO_PROCESS, 0, raised_nice) != 0)
                refused = errno;
            else
                experiment(run);
            ::eventfd_write(ended.get(), 1);
        });
    } catch (const std::system_error& error) {
        return fail("cannot make a thread", {}, error.code().value());
    }
    bool asked = false;
    {
        Bar bar(supervision.doing, supervision.shows_progress);
        asked = wait_for(ended, signals, run, bar);
    }
    thread.join();
    if (refused != 0) return fail("cannot run at raised priority", {}, refused);
    return asked ? Ending::stopped : Ending::done;
}

} // namespace affinityd::experiments
