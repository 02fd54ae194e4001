// SPDX-License-Identifier: Apache-2.0
#include "experiments/latency/ping_pong.hpp"

#include "experiments/frame/pinned_thread.hpp"
#include "experiments/frame/supervision.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>

#include <sys/resource.h>

namespace affinityd::experiments {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t line_bytes = 128; ///< two of x86, whose prefetcher takes pairs; one of some arm64
constexpr std::size_t most_repeats = 4;
constexpr auto warm_up = std::chrono::milliseconds(1);

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

/// Gives the turn from `mine` to `other` once it is mine. False: it is over.
template <Means means>
bool pass(std::atomic<std::uint32_t>& turn, std::uint32_t mine, std::uint32_t other) {
    if constexpr (means == Means::cas) {
        for (;;) {
            std::uint32_t found = mine;
            if (turn.compare_exchange_strong(found, other, std::memory_order_acq_rel)) return true;
            if (found == nobodys) return false;
        }
    } else {
        for (;;) {
            const auto found = turn.load(std::memory_order_acquire);
            if (found == nobodys) return false;
            if (found != mine) continue;
            turn.store(other, std::memory_order_release);
            return true;
        }
    }
}

void await_leaders_turn(const Table& table) {
    while (table.turn.load(std::memory_order_acquire) != leaders) {
    }
}

template <Means means>
void follow(Table& table, unsigned round_trips) {
    for (std::uint64_t sample = 1;; ++sample) {
        for (unsigned trip = 0; trip < round_trips; ++trip)
            if (!pass<means>(table.turn, followers, leaders)) return;
        table.follower_switches.store(switches_of_this_thread(), std::memory_order_relaxed);
        table.follower_samples.store(sample, std::memory_order_release);
    }
}

/// One sample at a time.
template <Means means>
class Leader {
  public:
    Leader(Table& table, unsigned round_trips) : table_(table), round_trips_(round_trips) {}
    struct Sample {
        double ns;
        bool was_interrupted;
    };
    Sample take() {
        const auto own_before = switches_of_this_thread();
        const auto begin = Clock::now();
        for (unsigned trip = 0; trip < round_trips_; ++trip)
            pass<means>(table_.turn, leaders, followers);
        await_leaders_turn(table_);
        const auto end = Clock::now();
        ++samples_;
        while (table_.follower_samples.load(std::memory_order_acquire) != samples_) {
        }
        const auto its = table_.follower_switches.load(std::memory_order_relaxed);
        const bool was_interrupted = switches_of_this_thread() != own_before || its != follower_before_;
        follower_before_ = its;
        const double ns = std::chrono::duration<double, std::nano>(end - begin).count();
        return {ns / (2.0 * round_trips_), was_interrupted};
    }

  private:
    Table& table_;
    unsigned round_trips_;
    std::uint64_t samples_ = 0, follower_before_ = 0;
};

template <Means means>
PairSamples lead(Table& table, const PingPong& how, const Run& run) {
    PairSamples result;
    result.ns.reserve(how.samples);
    Leader<means> leader(table, how.round_trips);
    for (const auto begin = Clock::now(); !run.is_stopped() && Clock::now() - begin < warm_up;)
        leader.take();
    for (std::size_t taken = 0; taken < most_repeats * how.samples; ++taken) {
        if (result.ns.size() == how.samples || run.is_stopped()) break;
        const auto sample = leader.take();
        if (sample.was_interrupted)
            ++result.interrupted;
        else
            result.ns.push_back(sample.ns);
    }
    table.turn.store(nobodys, std::memory_order_release);
    return result;
}

template <Means means>
Result<PairSamples> bounce_by(const CpuPair& pair, const PingPong& how, const Run& run) {
    Table table;
    PairSamples samples;
    auto follower = PinnedThread::start(CpuSet{pair.b}, [&] { follow<means>(table, how.round_trips); });
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
