// SPDX-License-Identifier: Apache-2.0
// The frame of all experiments: how they run, how their cases are timed and compared, and the result they end
// with.
#pragma once

#include "base/clock.hpp"
#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "host/fd.hpp"
#include "measure/statistics.hpp"
#include "topology/topology.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/resource.h>

namespace affinityd::host {
class Root;
}

namespace affinityd::experiments {

/// How far an experiment is, and whether it is to end. Any thread may call any member at any time.
class Run {
  public:
    Run();
    /// Return soon, with what there is. To be asked at least ten times a second.
    [[nodiscard]] bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }
    /// Readable once it is stopped, for those that wait; -1: there is none.
    [[nodiscard]] int stop_file() const { return stop_file_.get(); }
    void stop();
    /// `done` of `all` equal parts. Nothing is shown before the first call.
    void advance(std::uint64_t done, std::uint64_t all) {
        all_.store(all, std::memory_order_relaxed);
        done_.store(done, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t done() const { return done_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t all() const { return all_.load(std::memory_order_relaxed); }

  private:
    std::atomic<bool> stopped_{false};
    std::atomic<std::uint64_t> done_{0}, all_{0};
    host::Fd stop_file_;
};

struct Supervision {
    std::string doing;           ///< for the progress bar on a terminal: "measuring latency"
    bool wants_priority = false; ///< the experiment's threads run at nice -10
};

enum class Ending {
    done,
    stopped, ///< by SIGINT, SIGTERM or SIGHUP, unless the program ignores it
};

/// Calls `experiment` on a thread of its own, which has all signals blocked, as have the threads that it
/// makes; meanwhile this thread takes the signals that end programs and draws a progress bar. Returns when
/// the experiment has returned. A second signal ends the program at once: what experiments do to the machine
/// ends with it. An Error: the priority was not granted, or a descriptor or thread cannot be had.
[[nodiscard]] Result<Ending> supervise(const Supervision& supervision,
                                       const std::function<void(Run&)>& experiment);

/// "measuring latency [########------------] 41 %, 12 s left", in so many columns at most.
[[nodiscard]] std::string progress_bar(const std::string& doing, double share, double seconds_left,
                                       std::size_t columns);
/// A time as people say it, when it is an estimate: "under 1 s", "12 s", "3 min", "1 h 20 min".
[[nodiscard]] std::string time_words(double seconds);

/// A thread of this process that stays on given CPUs: when the process ends, however it does, nothing of that
/// is left. The destructor and move assignment await the thread's end.
class PinnedThread {
  public:
    PinnedThread() = default;
    /// Returns when the thread is on its CPUs, and just then calls `body` there, which must not throw. An
    /// Error: it cannot be made, or may not run there; `body` is not called then.
    [[nodiscard]] static Result<PinnedThread> start(const CpuSet& cpus, std::function<void()> body);
    void join() {
        if (thread_.joinable()) thread_.join();
    }

  private:
    explicit PinnedThread(std::jthread thread) : thread_(std::move(thread)) {}
    std::jthread thread_;
};
/// Moves the calling thread.
[[nodiscard]] Result<void> go_to(const CpuSet& cpus);

/// The online CPUs on which this program may run: its mask and its cpuset allow them, sched_getaffinity(2).
[[nodiscard]] Result<CpuSet> usable_cpus(const topology::Topology& topology);

/// CPU time of the calling thread.
[[nodiscard]] inline double thread_seconds() { return std::chrono::duration<double>(thread_time()).count(); }
/// How often the scheduler has given this thread's CPU to another one while it wanted to go on.
[[nodiscard]] inline long preemptions() {
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    return used.ru_nivcsw;
}

/// The CPU is emulated by translating its instructions (QEMU's TCG), as its hypervisor says: CPUID leaf
/// 0x40000000. False where no instruction reveals it (architectures other than x86).
[[nodiscard]] bool is_emulated();

/// How busy CPUs are before an experiment adds to it. Parts of their time, 0 to 1.
struct Quiet {
    double busy = 0;    ///< of all of them: others' programs, interrupts, and what a hypervisor took
    double stolen = 0;  ///< what a hypervisor took
    double busiest = 0; ///< of the one that is busiest
    unsigned busiest_cpu = 0;
    /// As busy as this, an experiment's figures are still what they would be on an idle machine.
    [[nodiscard]] bool is_enough() const { return busy <= 0.05 && busiest <= 0.25 && stolen <= 0.02; }
};

/// Watches `cpus` for so long; nothing of this program should run meanwhile. No value: the machine does not
/// say. Source: proc_stat(5).
[[nodiscard]] std::optional<Quiet>
look_for_quiet(const host::Root& root, const CpuSet& cpus,
               std::chrono::milliseconds time = std::chrono::milliseconds(500));
/// The same from two readings of /proc/stat.
[[nodiscard]] std::optional<Quiet> quiet_between(std::string_view first, std::string_view last,
                                                 const CpuSet& cpus);
/// "other programs keep these CPUs busy for 34 % of the time (CPU 3: 90 %): figures may be too high"; "" if
/// it is quiet enough.
[[nodiscard]] std::string remark_of(const Quiet& quiet);

/// A case of an experiment: the same work in one of the ways that are compared.
struct Case {
    std::vector<double> seconds;           ///< how long the work took, by round; above zero
    std::optional<measure::Interval> mean; ///< of those, once compared; no value: too few rounds
    measure::Comparison
        longer; ///< than in the case it is compared with, relative; of that one itself without meaning
};

/// The end of every experiment, beside its cases.
struct Reading {
    std::size_t disturbed =
        0;                ///< runs that another program had a part in: taken again, or counted all the same
    bool is_whole = true; ///< all rounds were made before it was stopped
    std::vector<std::string> findings; ///< sentences
    std::string verdict; ///< a few words, as a policy's key: "bind: llc"; "": the experiment has none
    std::string meaning; ///< one paragraph: what to write into a policy
    std::string summary; ///< one line for the history
};

/// The mean of times, and the interval that holds the true one; no value below measure::least_samples.
[[nodiscard]] std::optional<measure::Interval> mean_time(std::span<const double> seconds);
/// Fills in the mean of `one`, and how much longer it takes than `base`; null: it is compared with none.
/// `comparisons`: how many such statements the experiment makes, all of which hold together in 95 of 100.
void compare(Case& one, const Case* base, unsigned comparisons);

/// "takes 67 % (61 to 72) less time than pinned pairs" or so, each percentage with its interval. `base`: the
/// case it is compared with.
[[nodiscard]] std::string longer_words(const measure::Comparison& longer, std::string_view base);
/// "12 % (11 to 14)": how far a change is from none.
[[nodiscard]] std::string size_words(const measure::Interval& change);
/// "3.53 ms": the mean, whatever the number of rounds.
[[nodiscard]] std::string ms_words(std::span<const double> seconds);

/// Calls `take` with each case once a round, each round beginning with another case, so that a disturbance
/// that lasts hits all alike. `take` returns a Result. The value is false: it was stopped.
template <class OneCase, class Take>
[[nodiscard]] Result<bool> by_turns(std::span<OneCase> cases, unsigned rounds, const Run& run,
                                    const Take& take) {
    for (unsigned round = 0; round < rounds; ++round)
        for (std::size_t i = 0; i < cases.size(); ++i) {
            auto taken = take(cases[(round + i) % cases.size()]);
            if (!taken) return std::unexpected(taken.error());
            if (run.is_stopped()) return false;
        }
    return true;
}

} // namespace affinityd::experiments
