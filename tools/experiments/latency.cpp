// SPDX-License-Identifier: Apache-2.0
#include "experiments/latency.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <semaphore>
#include <utility>

namespace affinityd::experiments {

namespace {

constexpr std::size_t few_cores = 32; ///< of an LLC group: all pairs of them are measured
constexpr std::size_t partners = 24;  ///< of each core of a larger group
constexpr std::size_t between_groups = 4;

std::vector<CpuPair> each_with_each(const std::vector<unsigned>& cpus) {
    std::vector<CpuPair> pairs;
    for (std::size_t b = 0; b < cpus.size(); ++b)
        for (std::size_t a = 0; a < b; ++a)
            pairs.push_back(ordered(cpus[a], cpus[b]));
    return pairs;
}

/// Every CPU gets partners near and far in the order of numbers: as meshes are numbered, all over the mesh.
std::vector<CpuPair> part_of_each_with_each(const std::vector<unsigned>& cpus) {
    if (cpus.size() <= few_cores) return each_with_each(cpus);
    std::vector<CpuPair> pairs;
    const auto step = std::max<std::size_t>(1, cpus.size() / partners);
    for (std::size_t a = 0; a < cpus.size(); ++a)
        for (std::size_t away = 1; away <= cpus.size() / 2; away += step)
            pairs.push_back(ordered(cpus[a], cpus[(a + away) % cpus.size()]));
    return pairs;
}

/// By LLC group, one CPU of each core.
std::vector<std::vector<unsigned>> cores_by_llc(const topology::Topology& topology, const CpuSet& cpus) {
    std::vector<std::vector<unsigned>> groups;
    const auto chosen = one_per_core(topology, cpus);
    for (const auto& llc : topology.llc_groups())
        if (const auto members = llc & chosen; !members.empty()) groups.push_back(members.to_vector());
    return groups;
}

std::vector<CpuPair> some_pairs(const topology::Topology& topology, const CpuSet& cpus) {
    auto pairs = Nearness(topology).pairs(cpus, Near::core);
    const auto groups = cores_by_llc(topology, cpus);
    for (std::size_t b = 0; b < groups.size(); ++b) {
        const auto within = part_of_each_with_each(groups[b]);
        pairs.insert(pairs.end(), within.begin(), within.end());
        for (std::size_t a = 0; a < b; ++a)
            for (std::size_t i = 0; i < between_groups; ++i) {
                // Other members each time, and for each two groups.
                const auto of_a = groups[a][(i + b) % groups[a].size()];
                const auto of_b = groups[b][(i + a) % groups[b].size()];
                pairs.push_back(ordered(of_a, of_b));
            }
    }
    return pairs;
}

constexpr double usual_ns = 120, pair_seconds = 0.0025;

/// No value: there is no sample.
std::optional<PairFigures> figures_of(const CpuPair& pair, const std::vector<double>& samples) {
    if (samples.empty()) return std::nullopt;
    PairFigures figures{pair,
                        std::accumulate(samples.begin(), samples.end(), 0.0) /
                            static_cast<double>(samples.size()),
                        {},
                        {},
                        *measure::median(samples)};
    if (const auto interval = mean_time(samples)) {
        figures.low = interval->low;
        figures.high = interval->high;
    }
    return figures;
}

using Clock = std::chrono::steady_clock;

constexpr std::size_t line_bytes = 128; ///< two of x86, whose prefetcher takes pairs; one of some arm64
constexpr std::size_t most_repeats = 4;
constexpr auto warm_up = std::chrono::milliseconds(1), most_time = std::chrono::milliseconds(500);
constexpr auto between_looks = std::chrono::milliseconds(10); ///< of the thread that watches over the two
/// In that time; fewer: each is on its CPU only while the other one is not.
constexpr std::uint64_t few_trips = 50;

/// Tells whose turn it is, or that it is over. With the flag, the other one waits in vain and is to sleep.
enum Turn : std::uint32_t { leaders, followers, over, is_late = 4 };

/// State that the two threads share; each member on a line of its own.
struct Table {
    alignas(line_bytes) std::atomic<std::uint32_t> turn{leaders | is_late}; ///< until the leader has come
    /// How often the follower was taken off its CPU, told after each sample: the count of samples, then.
    alignas(line_bytes) std::atomic<std::uint64_t> follower_switches{0};
    std::atomic<std::uint64_t> follower_samples{0};
    alignas(line_bytes) std::atomic<std::uint64_t> trips{0}; ///< of the leader, for who watches
    alignas(line_bytes) std::counting_semaphore<2> ended{0}; ///< once for each of the two
};

std::uint64_t switches_of_this_thread() {
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    return static_cast<std::uint64_t>(used.ru_nvcsw + used.ru_nivcsw);
}

/// A thread may wait in vain because the other one is off its CPU, on a busy machine. The thread goes on for
/// longer than the scheduler lets others run, since a sleeper loses its turn; but two CPUs on which as many
/// programs take turns may keep step, and then the two never meet: at last it sleeps, each time for another
/// while. Such a sample is taken again.
class Rests {
  public:
    void take() {
        rests_ = rests_ * 5 + 1;
        std::this_thread::sleep_for(shortest * (1 + rests_ % 16));
    }

  private:
    static constexpr auto shortest = std::chrono::microseconds(200);
    unsigned rests_ = 0;
};

/// Gives the turn from `mine` to `other` once it is mine. False: it is over. The thread that waits does
/// nothing but look: with one instruction more the line is asked for at another pace, which was seen to
/// change the result by a third. The thread that watches over the two does the rest.
template <Means means>
bool pass(std::atomic<std::uint32_t>& turn, std::uint32_t mine, std::uint32_t other, Rests& rests) {
    for (;;) {
        std::uint32_t found = mine;
        if constexpr (means == Means::cas) {
            do {
                found = mine;
                if (turn.compare_exchange_strong(found, other, std::memory_order_acq_rel)) return true;
            } while (found == other);
        } else {
            do
                found = turn.load(std::memory_order_acquire);
            while (found == other);
        }
        if (found == over) return false;
        if ((found & ~is_late) == mine) {
            turn.store(other, std::memory_order_release);
            return true;
        }
        rests.take();
    }
}

template <Means means>
void follow(Table& table, unsigned round_trips) {
    Rests rests;
    for (std::uint64_t sample = 1;; ++sample) {
        for (unsigned trip = 0; trip < round_trips; ++trip)
            if (!pass<means>(table.turn, followers, leaders, rests)) return;
        table.follower_switches.store(switches_of_this_thread(), std::memory_order_relaxed);
        table.follower_samples.store(sample, std::memory_order_release);
    }
}

/// Takes one sample at a time.
template <Means means>
class Leader {
  public:
    Leader(Table& table, unsigned round_trips) : table_(table), round_trips_(round_trips) {}
    struct Sample {
        double ns;
        bool was_interrupted;
    };
    /// No value: it is to end.
    std::optional<Sample> take() {
        const auto own_before = switches_of_this_thread();
        const auto begin = Clock::now();
        for (unsigned trip = 0; trip < round_trips_; ++trip) {
            if (!pass<means>(table_.turn, leaders, followers, rests_)) return std::nullopt;
            table_.trips.store(++trips_, std::memory_order_relaxed);
        }
        if (!has_come_back()) return std::nullopt;
        const auto end = Clock::now();
        ++samples_;
        while (table_.follower_samples.load(std::memory_order_acquire) != samples_)
            if (table_.turn.load(std::memory_order_relaxed) == over) return std::nullopt;
        const auto its = table_.follower_switches.load(std::memory_order_relaxed);
        const bool was_interrupted = switches_of_this_thread() != own_before || its != follower_before_;
        follower_before_ = its;
        const double ns = std::chrono::duration<double, std::nano>(end - begin).count();
        return Sample{ns / (2.0 * round_trips_), was_interrupted};
    }

  private:
    bool has_come_back() {
        for (;;) {
            std::uint32_t found = followers;
            while (found == followers)
                found = table_.turn.load(std::memory_order_acquire);
            if ((found & ~is_late) != followers) return found != over;
            rests_.take();
        }
    }

    Table& table_;
    unsigned round_trips_;
    Rests rests_;
    std::uint64_t samples_ = 0, trips_ = 0, follower_before_ = 0;
};

template <Means means>
PairSamples lead(Table& table, const PingPong& how, const Run& run) {
    PairSamples result;
    result.ns.reserve(how.samples);
    Leader<means> leader(table, how.round_trips);
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
    table.turn.store(over, std::memory_order_release);
    return result;
}

/// Until both have ended: tells the one that waits in vain, and ends the game when it is over.
void watch_over(Table& table, const Run& run) {
    bool is_over = false;
    std::uint64_t before = 0;
    for (int left = 2; left > 0;) {
        if (table.ended.try_acquire_for(between_looks)) {
            --left;
            is_over = true;
            continue;
        }
        const auto trips = table.trips.load(std::memory_order_relaxed);
        // Again and again: a thread may pass on the turn that it had before.
        is_over |= run.is_stopped();
        if (is_over) {
            table.turn.store(over, std::memory_order_release);
        } else if (trips - before < few_trips) {
            auto turn = table.turn.load(std::memory_order_relaxed);
            if (turn != over) table.turn.compare_exchange_strong(turn, turn | is_late);
        }
        before = trips;
    }
}

template <Means means>
Result<PairSamples> bounce_by(const CpuPair& pair, const PingPong& how, const Run& run) {
    Table table;
    PairSamples samples;
    auto follower = PinnedThread::start(CpuSet{pair.b}, [&] {
        follow<means>(table, how.round_trips);
        table.ended.release();
    });
    if (!follower) return std::unexpected(follower.error());
    auto leader = PinnedThread::start(CpuSet{pair.a}, [&] {
        samples = lead<means>(table, how, run);
        table.ended.release();
    });
    if (!leader) {
        table.turn.store(over, std::memory_order_release);
        return std::unexpected(leader.error());
    }
    watch_over(table, run);
    leader->join();
    follower->join();
    return samples;
}

} // namespace

std::expected<std::vector<CpuPair>, Refusal> choose_pairs(const topology::Topology& topology,
                                                          const CpuSet& cpus, PairChoice choice) {
    if (cpus.count() < 2) return std::unexpected(Refusal::one_cpu);
    std::vector<CpuPair> pairs;
    if (choice == PairChoice::core) {
        pairs = each_with_each(one_per_core(topology, cpus).to_vector());
        if (pairs.empty()) return std::unexpected(Refusal::one_core);
    } else if (choice == PairChoice::llc) {
        std::vector<unsigned> firsts;
        for (const auto& group : cores_by_llc(topology, cpus))
            firsts.push_back(group.front());
        pairs = each_with_each(firsts);
        if (pairs.empty()) return std::unexpected(Refusal::one_llc);
    } else if (choice == PairChoice::all || cpus.count() <= few_cpus) {
        pairs = each_with_each(cpus.to_vector());
    } else {
        pairs = some_pairs(topology, cpus);
    }
    std::ranges::sort(pairs);
    const auto same = std::ranges::unique(pairs);
    pairs.erase(same.begin(), same.end());
    std::mt19937 order(1); // NOLINT(cert-msc51-cpp): the same order each time is wanted
    for (std::size_t left = pairs.size(); left > 1; --left)
        std::swap(pairs[left - 1], pairs[order() % left]);
    return pairs;
}

std::string_view name_of(Means means) { return means == Means::cas ? "cas" : "store"; }

Result<PairSamples> bounce(const CpuPair& pair, const PingPong& how, const Run& run) {
    return how.means == Means::cas ? bounce_by<Means::cas>(pair, how, run)
                                   : bounce_by<Means::store>(pair, how, run);
}

Result<LatencyMatrix> measure_pairs(const CpuSet& cpus, topology::MeasuredMachine machine,
                                    const std::vector<CpuPair>& pairs, const PingPong& how, Run& run) {
    LatencyMatrix matrix{topology::Latencies(cpus, std::move(machine)), {}, how};
    std::size_t done = 0;
    for (const auto& pair : pairs) {
        run.advance(done++, pairs.size());
        const auto samples = bounce(pair, how, run);
        if (!samples) return std::unexpected(samples.error());
        if (run.is_stopped()) {
            matrix.is_whole = false;
            break;
        }
        matrix.interrupted += samples->interrupted;
        if (const auto figures = figures_of(pair, samples->ns)) {
            matrix.latencies.set(pair.a, pair.b, figures->ns);
            matrix.pairs.push_back(*figures);
        } else {
            matrix.disturbed.push_back(pair);
        }
    }
    std::ranges::sort(matrix.pairs, {}, &PairFigures::pair);
    return matrix;
}

double estimated_seconds(std::size_t pairs, const PingPong& how) {
    const double sample = 2 * usual_ns * 1e-9 * how.round_trips;
    return static_cast<double>(pairs) * (pair_seconds + sample * how.samples);
}

} // namespace affinityd::experiments
