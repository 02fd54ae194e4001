// SPDX-License-Identifier: Apache-2.0
#include "experiments/latency/ping_pong.hpp"

#include "experiments/frame/pinned_thread.hpp"
#include "experiments/frame/supervision.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>

#include <sys/resource.h>

namespace affinityd::experiments {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t line_bytes = 128; ///< two of x86, whose prefetcher takes pairs; one of some arm64
constexpr std::size_t most_repeats = 4;
constexpr auto warm_up = std::chrono::milliseconds(1), most_time = std::chrono::milliseconds(500);

/// Whose turn it is, or that it is over.
enum Turn : std::uint32_t { leaders, followers, nobodys };

/// What the two threads share; each member on a line of its own.
struct Table {
    alignas(line_bytes) std::atomic<std::uint32_t> turn{leaders};
    /// How often the follower was taken off its CPU, told after each sample: the count of samples, then.
    alignas(line_bytes) std::atomic<std::uint64_t> follower_switches{0};
    std::atomic<std::uint64_t> follower_samples{0};
};

std::uint64_t switches_of_this_thread() {
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    return static_cast<std::uint64_t>(used.ru_nvcsw + used.ru_nivcsw);
}

/// What a thread does that waits in vain because the other one is off its CPU, on a busy machine. It goes on
/// for longer than the scheduler lets others run, since who sleeps loses its turn; but two CPUs on which as
/// many programs take turns may keep step, and then the two never meet: at last it sleeps, each time for
/// another while. Such a sample is taken again.
class Patience {
  public:
    explicit Patience(const Run& run) : run_(run) {}
    /// After each look in vain. False: it is to end.
    bool go_on() {
        if (++looks_ % many_looks != 0) return true;
        rests_ = rests_ * 5 + 1;
        std::this_thread::sleep_for(shortest_rest * (1 + rests_ % 16));
        return !run_.is_stopped();
    }

  private:
    static constexpr unsigned many_looks = 1U << 19U; ///< some ten milliseconds
    static constexpr auto shortest_rest = std::chrono::microseconds(200);
    const Run& run_;
    unsigned looks_ = 0, rests_ = 0;
};

/// Gives the turn from `mine` to `other` once it is mine. False: it is over.
template <Means means>
bool pass(std::atomic<std::uint32_t>& turn, std::uint32_t mine, std::uint32_t other, Patience& patience) {
    for (;;) {
        std::uint32_t found = mine;
        if constexpr (means == Means::cas) {
            if (turn.compare_exchange_strong(found, other, std::memory_order_acq_rel)) return true;
        } else {
            found = turn.load(std::memory_order_acquire);
            if (found == mine) {
                turn.store(other, std::memory_order_release);
                return true;
            }
        }
        if (found == nobodys || !patience.go_on()) return false;
    }
}

template <class Condition>
bool await(const Condition& condition, Patience& patience) {
    while (!condition())
        if (!patience.go_on()) return false;
    return true;
}

template <Means means>
void follow(Table& table, unsigned round_trips, const Run& run) {
    Patience patience(run);
    for (std::uint64_t sample = 1;; ++sample) {
        for (unsigned trip = 0; trip < round_trips; ++trip)
            if (!pass<means>(table.turn, followers, leaders, patience)) return;
        table.follower_switches.store(switches_of_this_thread(), std::memory_order_relaxed);
        table.follower_samples.store(sample, std::memory_order_release);
    }
}

/// One sample at a time.
template <Means means>
class Leader {
  public:
    Leader(Table& table, unsigned round_trips, const Run& run)
        : table_(table), round_trips_(round_trips), patience_(run) {}
    struct Sample {
        double ns;
        bool was_interrupted;
    };
    /// No value: it is to end.
    std::optional<Sample> take() {
        const auto own_before = switches_of_this_thread();
        const auto begin = Clock::now();
        for (unsigned trip = 0; trip < round_trips_; ++trip)
            if (!pass<means>(table_.turn, leaders, followers, patience_)) return std::nullopt;
        const auto is_mine = [this] { return table_.turn.load(std::memory_order_acquire) == leaders; };
        if (!await(is_mine, patience_)) return std::nullopt;
        const auto end = Clock::now();
        ++samples_;
        const auto has_told = [this] {
            return table_.follower_samples.load(std::memory_order_acquire) == samples_;
        };
        if (!await(has_told, patience_)) return std::nullopt;
        const auto its = table_.follower_switches.load(std::memory_order_relaxed);
        const bool was_interrupted = switches_of_this_thread() != own_before || its != follower_before_;
        follower_before_ = its;
        const double ns = std::chrono::duration<double, std::nano>(end - begin).count();
        return Sample{ns / (2.0 * round_trips_), was_interrupted};
    }

  private:
    Table& table_;
    unsigned round_trips_;
    Patience patience_;
    std::uint64_t samples_ = 0, follower_before_ = 0;
};

template <Means means>
PairSamples lead(Table& table, const PingPong& how, const Run& run) {
    PairSamples result;
    result.ns.reserve(how.samples);
    Leader<means> leader(table, how.round_trips, run);
    bool goes_on = true;
    for (const auto first = Clock::now(); goes_on && Clock::now() - first < warm_up;)
        goes_on = leader.take().has_value();
    const auto begin = Clock::now();
    while (goes_on && result.ns.size() < how.samples && !run.is_stopped()) {
        if (result.interrupted > most_repeats * how.samples && Clock::now() - begin > most_time) break;
        const auto sample = leader.take();
        goes_on = sample.has_value();
        if (goes_on && sample->was_interrupted) ++result.interrupted;
        if (goes_on && !sample->was_interrupted) result.ns.push_back(sample->ns);
    }
    table.turn.store(nobodys, std::memory_order_release);
    return result;
}

template <Means means>
Result<PairSamples> bounce_by(const CpuPair& pair, const PingPong& how, const Run& run) {
    Table table;
    PairSamples samples;
    auto follower = PinnedThread::start(CpuSet{pair.b}, [&] { follow<means>(table, how.round_trips, run); });
    if (!follower) return std::unexpected(follower.error());
    auto leader = PinnedThread::start(CpuSet{pair.a}, [&] { samples = lead<means>(table, how, run); });
    if (!leader) {
        table.turn.store(nobodys, std::memory_order_release);
        return std::unexpected(leader.error());
    }
    leader->join();
    follower->join();
    return samples;
}

} // namespace

std::string_view name_of(Means means) { return means == Means::cas ? "cas" : "store"; }

Result<PairSamples> bounce(const CpuPair& pair, const PingPong& how, const Run& run) {
    return how.means == Means::cas ? bounce_by<Means::cas>(pair, how, run)
                                   : bounce_by<Means::store>(pair, how, run);
}

} // namespace affinityd::experiments
