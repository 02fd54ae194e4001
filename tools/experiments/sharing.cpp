// SPDX-License-Identifier: Apache-2.0
#include "experiments/sharing.hpp"

#include "affinity-ttcp/engine/usage.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>

namespace affinityd::experiments {

namespace {

constexpr unsigned warm_runs = 1, counted_runs = 3; ///< of each placing
constexpr double usual_addition_seconds = 30e-9;    ///< with two threads that take a line from each other
/// 128: two lines of x86, whose prefetcher takes pairs of them; one of some arm64.
constexpr std::size_t apart_bytes = 128;

/// Two pairs without a CPU in common where there are four CPUs, else one pair twice.
struct TwoPairs {
    CpuPair first, second;
};

/// The nearest of all pairs, or with `far` the farthest; there are at least two CPUs.
std::optional<CpuPair> best_pair(const Nearness& nearness, const CpuSet& cpus, bool far) {
    for (std::size_t i = 0; i < near_ones.size(); ++i)
        if (const auto pair = nearness.first_pair(cpus, near_ones[far ? near_ones.size() - 1 - i : i]))
            return pair;
    return std::nullopt;
}

TwoPairs two_pairs(const topology::Topology& topology, const CpuSet& cpus, bool far) {
    const Nearness nearness(topology);
    const auto first = best_pair(nearness, cpus, far).value_or(CpuPair{});
    CpuSet others = cpus - CpuSet{first.a, first.b};
    // CPUs of other cores, if there are such: the pairs are not to be in each other's way.
    const auto elsewhere = others - topology.core_of(first.a) - topology.core_of(first.b);
    if (elsewhere.count() >= 2) others = elsewhere;
    return {first, best_pair(nearness, others, far).value_or(first)};
}

PlacedThreads placed_as(Placing placing, const TwoPairs& pairs, std::optional<Near> near) {
    return {placing,
            {CpuSet{pairs.first.a}, CpuSet{pairs.second.a}, CpuSet{pairs.first.b}, CpuSet{pairs.second.b}},
            near};
}

/// Counts the reads of the thread that opens it, where the machine has such counters and lets this program
/// have them.
class ReadCounter {
  public:
    /// The error is an errno value.
    static std::expected<ReadCounter, int> open() {
        ReadCounter counter;
        counter.reads_ = open_one(PERF_COUNT_HW_CACHE_RESULT_ACCESS, -1);
        if (!counter.reads_) return std::unexpected(errno);
        counter.misses_ = open_one(PERF_COUNT_HW_CACHE_RESULT_MISS, counter.reads_.get());
        if (!counter.misses_) return std::unexpected(errno);
        return counter;
    }
    [[nodiscard]] std::optional<CacheReads> read() const {
        const auto reads = ttcp::read_counter(reads_), misses = ttcp::read_counter(misses_);
        if (!reads || !misses) return std::nullopt;
        return CacheReads{*reads, *misses};
    }

  private:
    static host::Fd open_one(std::uint64_t result, int group) {
        const std::uint64_t event =
            PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8U | result << 16U;
        return ttcp::open_counter(
            {.type = PERF_TYPE_HW_CACHE, .config = event, .in_kernel = false, .group = group});
    }
    host::Fd reads_, misses_;
};

/// "" where the counters can be had.
std::string why_no_counters() {
    const auto counter = ReadCounter::open();
    if (counter) return {};
    const std::string head = "no hardware counters here: ";
    switch (counter.error()) {
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV:
        return head + "this machine has none, as most virtual ones, or none for the first-level cache";
    case EACCES:
    case EPERM:
        return head + "this program may not use them (kernel.perf_event_paranoid); root may";
    default:
        return head + std::strerror(counter.error());
    }
}

struct Variables {
    alignas(apart_bytes) std::array<std::atomic<float>, 2> in_one_line{};
    alignas(apart_bytes) std::atomic<float> a{0};
    alignas(apart_bytes) std::atomic<float> b{0};
    std::atomic<float>& of(Placing placing, std::size_t thread) {
        if (placing == Placing::one_line) return in_one_line[thread % 2];
        return thread % 2 == 0 ? a : b;
    }
};

/// The work of one thread.
struct Part {
    std::atomic<float>* value = nullptr;
    unsigned additions = 0;
    bool counts = false;
    std::optional<CacheReads> reads{};
    std::atomic<bool> is_placed{false}; ///< or will not be
};

void add_to(std::atomic<float>& value, unsigned additions) {
    for (unsigned i = 0; i < additions; ++i)
        value = value + 1.0F;
}

void* work_of_thread(void* given) {
    auto& part = *static_cast<Part*>(given);
    std::optional<ReadCounter> counter;
    if (part.counts)
        if (auto opened = ReadCounter::open()) counter = std::move(*opened);
    add_to(*part.value, part.additions);
    if (counter) part.reads = counter->read();
    // A thread that has ended has no number: its maker would pin itself.
    part.is_placed.wait(false, std::memory_order_acquire);
    return nullptr;
}

/// Threads that their maker pins, as the document's program does: how long one has run elsewhere by then is
/// part of the figure. A thread that pins itself first waits for its turn on the CPU where it was made, which
/// takes a run several percent longer.
class Threads {
  public:
    Threads() = default;
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    ~Threads() {
        while (count_ > 0)
            ::pthread_join(started_[--count_], nullptr);
    }
    /// 0, or an error number; EINVAL: it may not run there. `part` must outlive the thread.
    int start(Part& part, const CpuSet& cpus) {
        pthread_t thread{};
        if (const int code = ::pthread_create(&thread, nullptr, work_of_thread, &part); code != 0)
            return code;
        started_[count_++] = thread;
        const auto words = cpus.words();
        const int code = ::pthread_setaffinity_np(thread, words.size_bytes(),
                                                  reinterpret_cast<const cpu_set_t*>(words.data()));
        part.is_placed.store(true, std::memory_order_release);
        part.is_placed.notify_one();
        return code;
    }

  private:
    std::array<pthread_t, sharing_threads> started_{};
    std::size_t count_ = 0;
};

/// A run: how long it took. With `counts` each thread counts its reads, which takes time of its own, and the
/// case gets them.
Result<double> run_once(SharingCase& one, unsigned additions, bool counts) {
    Variables variables;
    std::array<Part, sharing_threads> parts;
    const double begin = monotonic_seconds();
    {
        Threads threads;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            parts[i].value = &variables.of(one.placed.placing, i);
            parts[i].additions = additions;
            parts[i].counts = counts;
            const int code = threads.start(parts[i], one.placed.cpus[i]);
            if (code == EINVAL)
                return fail("a thread of this program may not run there",
                            "CPU " + one.placed.cpus[i].to_list(), code);
            if (code != 0) return fail("cannot make a thread", {}, code);
        }
    }
    const double seconds = monotonic_seconds() - begin;
    for (const auto& part : parts) {
        if (!part.reads) continue;
        if (!one.reads) one.reads.emplace();
        one.reads->reads += part.reads->reads;
        one.reads->misses += part.reads->misses;
    }
    return seconds;
}

const SharingCase* case_of(const SharingResult& result, Placing placing) {
    const auto found =
        std::ranges::find(result.cases, placing, [](const SharingCase& one) { return one.placed.placing; });
    return found == result.cases.end() ? nullptr : &*found;
}

bool takes(const SharingCase* one, measure::Verdict verdict) {
    return one != nullptr && one->longer.verdict == verdict;
}

/// The thread rules that place threads as they were: `bind: cpu`, as a wider mask lets the scheduler part or
/// mix what was measured. With a CPU for each thread, `spread: cpu` deals them out.
std::string rules_for(const PlacedThreads& placed) {
    std::string rules;
    for (const auto& [name, variable] : {std::pair{"left-*", 0U}, std::pair{"right-*", 1U}}) {
        const auto cpus = placed.cpus_of(variable);
        rules += fmt::format("{}{{name: \"{}\", cpus: \"{}\", {}bind: cpu}}", rules.empty() ? "" : ", ", name,
                             cpus.to_list(), cpus.count() > 1 ? "spread: cpu, " : "");
    }
    return "threads: [" + rules + "]";
}

std::string words_for_neighbours(const PlacedThreads& placed) {
    const auto* where = placed.near == Near::core  ? "on the hardware threads of one core"
                        : placed.near == Near::llc ? "within one last-level cache"
                                                   : "as near as can be";
    return fmt::format("a CPU of its own for each, those that share {}, as in {}", where, rules_for(placed)) +
           (placed.near == Near::llc ? "; for all threads of a process at once that is together: llc with "
                                       "spread: cpu and bind: cpu."
                                     : ".");
}

std::string meaning_of_sharing(const SharingResult& result) {
    const auto* pairs = case_of(result, Placing::pairs);
    const auto* neighbours = case_of(result, Placing::neighbours);
    if (pairs == nullptr || takes(pairs, measure::Verdict::not_enough))
        return "Too few runs for a verdict: at least four rounds are needed.";
    const bool pairs_win = takes(pairs, measure::Verdict::less),
               near_ones_win = takes(neighbours, measure::Verdict::less);
    const bool near_wins =
        near_ones_win && (!pairs_win || neighbours->longer.change.estimate < pairs->longer.change.estimate);
    std::string text;
    if (near_wins)
        text = "Threads that write the same data gain most from " + words_for_neighbours(neighbours->placed);
    else if (pairs_win)
        text = "Threads that write the same data belong on one CPU: give those that share a name one thread "
               "rule each, as in " +
               rules_for(pairs->placed) + ".";
    else
        text = "No placing was shown to be better than what the scheduler does with such threads here: leave "
               "them bind: llc (the default), and see "
               "to it that others do not take their CPUs.";
    if (pairs_win && near_ones_win && !near_wins)
        text += " Where they have more to do than one CPU can: " + words_for_neighbours(neighbours->placed);
    if (const auto* apart = case_of(result, Placing::apart); takes(apart, measure::Verdict::more)) {
        constexpr std::array levels{"cpu", "core", "llc", "node",
                                    "socket"}; // what deals tasks out so far from each other
        text += fmt::format(" Pinned without looking they are worse off than with no policy at all: do not "
                            "write spread: {} for threads that share "
                            "data.",
                            levels[static_cast<std::size_t>(apart->placed.near.value_or(Near::llc))]);
    }
    return text + " No policy helps against false sharing; the program has to give each variable a line of "
                  "its own. affinityctl sharers PID finds "
                  "out which threads of a program share.";
}

} // namespace

std::string_view name_of(Placing placing) {
    constexpr std::array names{"left to the scheduler", "pinned pairs", "pinned neighbours", "pinned apart",
                               "false sharing"};
    return names[static_cast<std::size_t>(placing)];
}

std::string_view key_of(Placing placing) {
    constexpr std::array keys{"scheduler", "pairs", "neighbours", "apart", "false_sharing"};
    return keys[static_cast<std::size_t>(placing)];
}

std::expected<std::vector<PlacedThreads>, Refusal> placed_threads(const topology::Topology& topology,
                                                                  const CpuSet& cpus) {
    if (cpus.count() < 2) return std::unexpected(Refusal::one_cpu);
    const Nearness nearness(topology);
    const auto cores = one_per_core(topology, cpus);
    const auto own = *best_pair(nearness, cores.count() >= 2 ? cores : cpus,
                                false); // of different cores where there are two
    const TwoPairs on_one_cpu{{own.a, own.a}, {own.b, own.b}};
    std::vector<PlacedThreads> all{{Placing::scheduler, {cpus, cpus, cpus, cpus}},
                                   placed_as(Placing::pairs, on_one_cpu, {})};
    const auto add = [&](Placing placing, const TwoPairs& pairs) {
        all.push_back(placed_as(placing, pairs, nearness.between(pairs.first.a, pairs.first.b)));
    };
    if (cpus.count() >= sharing_threads) add(Placing::neighbours, two_pairs(topology, cpus, false));
    add(Placing::apart, two_pairs(topology, cpus, true));
    all.push_back(placed_as(Placing::one_line, on_one_cpu, {}));
    return all;
}

Result<SharingResult> measure_sharing(const std::vector<PlacedThreads>& placings, const SharingHow& how,
                                      Run& run) {
    SharingResult result;
    result.how = how;
    for (const auto& placed : placings)
        result.cases.push_back({{}, placed});
    result.no_counters = why_no_counters();
    const std::size_t all = (how.rounds + warm_runs) * placings.size();
    std::size_t done = 0;
    const auto whole =
        by_turns(std::span(result.cases), how.rounds + warm_runs, run, [&](SharingCase& one) -> Result<void> {
            run.advance(done++, all);
            const auto seconds = run_once(one, how.additions, false);
            if (!seconds) return std::unexpected(seconds.error());
            if (done > warm_runs * placings.size()) one.seconds.push_back(*seconds);
            return {};
        });
    if (!whole) return std::unexpected(whole.error());
    result.is_whole = *whole;
    if (!result.is_whole || !result.no_counters.empty()) return result;
    const auto counted = by_turns(std::span(result.cases), counted_runs, run,
                                  [&](SharingCase& one) { return run_once(one, how.additions, true); });
    if (!counted) return std::unexpected(counted.error());
    return result;
}

double estimated_seconds(std::size_t placings, const SharingHow& how) {
    const double run = 0.0005 + usual_addition_seconds * how.additions;
    return run * static_cast<double>(placings * (how.rounds + warm_runs + counted_runs));
}

void read_sharing(SharingResult& result) {
    if (result.cases.empty()) return;
    const auto* pairs = case_of(result, Placing::pairs);
    const auto* one_line = case_of(result, Placing::one_line);
    const bool tells_more = pairs != nullptr && one_line != nullptr;
    const auto comparisons =
        static_cast<unsigned>(std::max<std::size_t>(1, result.cases.size() - 1 + (tells_more ? 1 : 0)));
    for (auto& one : result.cases) {
        compare(one, one.placed.placing == Placing::scheduler ? nullptr : &result.cases.front(), comparisons);
        const auto name = name_of(one.placed.placing);
        result.summary +=
            fmt::format("{}{} {}", result.summary.empty() ? "" : ", ", name, ms_words(one.seconds));
        if (one.placed.placing != Placing::scheduler && one.placed.placing != Placing::one_line)
            result.findings.push_back(
                fmt::format("{}: {}", name, longer_words(one.longer, "what the scheduler does")));
    }
    // False sharing against the pinned pairs: the same CPUs, another layout in memory.
    if (tells_more)
        result.findings.push_back(
            "false sharing, two variables in one line, each written by one CPU only: " +
            longer_words(measure::compare_times(pairs->seconds, one_line->seconds, comparisons),
                         "pinned pairs on the same CPUs"));
    result.meaning = meaning_of_sharing(result);
}

} // namespace affinityd::experiments
