// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame.hpp"

#include "affinity-ttcp/engine/activity.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "host/signals.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

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

/// The bar on standard error, wiped at the end. A terminal may go meanwhile, at which fmt::print would throw.
class Bar {
  public:
    explicit Bar(std::string doing) : doing_(std::move(doing)) {}
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
        const auto text =
            progress_bar(doing_, share, share > 0 ? spent / share - spent : 0, terminal_columns() - 1);
        std::fputs(("\r" + text + "\033[K").c_str(), stderr);
        drawn_ = true;
    }

  private:
    std::string doing_;
    const bool draws_ = can_draw();
    bool drawn_ = false;
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

/// Until `ended` can be read. True: a signal asked for its end.
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

/// Some counters go back now and then.
double grown(double first, double last) { return std::max(0.0, last - first); }

} // namespace

Run::Run() : stop_file_(::eventfd(0, EFD_CLOEXEC)) {}

void Run::stop() {
    stopped_.store(true, std::memory_order_relaxed);
    ::eventfd_write(stop_file_.get(), 1);
}

std::string progress_bar(const std::string& doing, double share, double seconds_left, std::size_t columns) {
    const auto figures =
        fmt::format("{:.0f} %{}", share * 100, share > 0 ? ", " + time_words(seconds_left) + " left" : "");
    const std::size_t around = doing.size() + figures.size() + 4; // a space, brackets, a space
    const std::size_t cells = std::clamp(columns, around + least_cells, around + bar_cells) - around;
    const auto filled = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(cells));
    return fmt::format("{} [{:#<{}}{:-<{}}] {}", doing, "", filled, "", cells - filled, figures)
        .substr(0, columns);
}

std::string time_words(double seconds) {
    if (!(seconds >= 1)) return "under 1 s";
    if (seconds < 99.5) return std::to_string(std::lround(seconds)) + " s";
    const auto minutes = std::lround(std::fmin(seconds, 1e9) / 60);
    if (minutes < 100) return std::to_string(minutes) + " min";
    const auto rest = minutes % 60;
    return std::to_string(minutes / 60) + " h" + (rest == 0 ? "" : " " + std::to_string(rest) + " min");
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
        Bar bar(supervision.doing);
        asked = wait_for(ended, signals, run, bar);
    }
    thread.join();
    if (refused != 0) return fail("cannot run at raised priority", {}, refused);
    return asked ? Ending::stopped : Ending::done;
}

Result<void> go_to(const CpuSet& cpus) {
    if (const int code = host::set_affinity(0, cpus); code != 0)
        return fail("a thread of this program may not run there", "CPU " + cpus.to_list(), code);
    return {};
}

Result<PinnedThread> PinnedThread::start(const CpuSet& cpus, std::function<void()> body) {
    std::promise<Result<void>> pinned;
    auto outcome = pinned.get_future();
    std::jthread thread;
    try {
        thread = std::jthread([cpus, pinned = std::move(pinned), body = std::move(body)]() mutable {
            auto done = go_to(cpus);
            const bool may_run = done.has_value();
            pinned.set_value(std::move(done));
            if (may_run) body();
        });
    } catch (const std::system_error& error) {
        return fail("cannot make a thread", {}, error.code().value());
    }
    if (auto done = outcome.get(); !done) return std::unexpected(done.error());
    return PinnedThread(std::move(thread));
}

Result<CpuSet> usable_cpus(const topology::Topology& topology) {
    const auto allowed = host::get_affinity(0);
    if (!allowed) return fail("cannot read on which CPUs this program may run", {}, allowed.error());
    return *allowed & topology.online;
}

bool is_emulated() {
#if defined(__x86_64__) || defined(__i386__)
    constexpr unsigned has_hypervisor = 1U << 31U, name = 0x54474354; // "TCGT"
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & has_hypervisor) == 0) return false;
    __cpuid(0x40000000, a, b, c, d);
    return b == name;
#else
    return false;
#endif
}

std::optional<Quiet> quiet_between(std::string_view first, std::string_view last, const CpuSet& cpus) {
    const auto before = ttcp::parse_cpu_times(first, 1);
    Quiet quiet;
    double all = 0, busy = 0, stolen = 0;
    for (const auto& to : ttcp::parse_cpu_times(last, 1)) {
        const auto from = std::ranges::find(before, to.cpu, &ttcp::CpuTime::cpu);
        if (from == before.end() || !cpus.contains(to.cpu)) continue;
        const double idle = grown(from->idle + from->iowait, to.idle + to.iowait);
        const double time = grown(from->busy() + from->idle + from->iowait, to.busy() + to.idle + to.iowait);
        if (time <= 0) continue;
        const double used = std::max(0.0, time - idle);
        all += time;
        busy += used;
        stolen += grown(from->steal, to.steal);
        if (used / time > quiet.busiest) {
            quiet.busiest = used / time;
            quiet.busiest_cpu = to.cpu;
        }
    }
    if (all <= 0) return std::nullopt;
    quiet.busy = busy / all;
    quiet.stolen = stolen / all;
    return quiet;
}

std::optional<Quiet> look_for_quiet(const host::Root& root, const CpuSet& cpus,
                                    std::chrono::milliseconds time) {
    const auto first = root.proc().read("stat");
    std::this_thread::sleep_for(time);
    const auto last = root.proc().read("stat");
    if (!first || !*first || !last || !*last) return std::nullopt;
    return quiet_between(**first, **last, cpus);
}

std::string remark_of(const Quiet& quiet) {
    if (quiet.is_enough()) return {};
    auto text = fmt::format("other programs keep these CPUs busy for {:.0f} % of the time (CPU {}: {:.0f} %)",
                            100 * quiet.busy, quiet.busiest_cpu, 100 * quiet.busiest);
    if (quiet.stolen > 0.02)
        text += fmt::format(", and a hypervisor took {:.0f} % for others", 100 * quiet.stolen);
    return text + ": figures vary more than on a quiet machine, and may be too high";
}

std::optional<measure::Interval> mean_time(std::span<const double> seconds) {
    std::vector<double> rates;
    for (const double time : seconds)
        rates.push_back(1 / time);
    const auto rate = measure::mean_interval(rates);
    if (!rate) return std::nullopt;
    return measure::Interval{1 / rate->estimate, 1 / rate->high, 1 / rate->low};
}

void compare(Case& one, const Case* base, unsigned comparisons) {
    one.mean = mean_time(one.seconds);
    if (base != nullptr) one.longer = measure::compare_times(base->seconds, one.seconds, comparisons);
}

std::string size_words(const measure::Interval& change) {
    const int digits = change.high - change.low < 0.05 ? 1 : 0;
    const auto [near, far] =
        std::minmax(change.low, change.high, [](double a, double b) { return std::abs(a) < std::abs(b); });
    return fmt::format("{} % ({} to {})", measure::percent(std::abs(change.estimate), digits),
                       measure::percent(std::abs(near), digits), measure::percent(std::abs(far), digits));
}

std::string longer_words(const measure::Comparison& longer, std::string_view base) {
    constexpr double wide = 0.2; // an interval, from end to end, that says neither
    const auto& change = longer.change;
    switch (longer.verdict) {
    case measure::Verdict::more:
    case measure::Verdict::less:
        return fmt::format("takes {} {} time than {}", size_words(change),
                           longer.verdict == measure::Verdict::more ? "more" : "less", base);
    case measure::Verdict::none_shown:
        return fmt::format(
            "{} {}{} ({} to {} %)",
            change.high - change.low > wide ? "may take more or less time than" : "takes as long as", base,
            change.high - change.low > wide ? ", more rounds would tell" : ", as far as this shows",
            measure::signed_percent(change.low, 1), measure::signed_percent(change.high, 1));
    case measure::Verdict::not_enough:
        break;
    }
    return fmt::format("had too few rounds to be compared with {}", base);
}

std::string ms_words(std::span<const double> seconds) {
    double sum = 0;
    for (const double each : seconds)
        sum += each * 1e3;
    const double mean = seconds.empty() ? 0 : sum / static_cast<double>(seconds.size());
    return mean < 1000 ? fmt::format("{:.3g} ms", mean) : fmt::format("{:.0f} ms", mean);
}

} // namespace affinityd::experiments
