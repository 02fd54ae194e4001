// SPDX-License-Identifier: Apache-2.0
#include "experiments/cache.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace affinityd::experiments {

namespace {

constexpr std::uint64_t line_size = 64;

CacheSizes sizes_at(const topology::Topology& topology, unsigned cpu) {
    CacheSizes sizes;
    const auto core = topology.core_of(cpu);
    for (const auto& cache : topology.caches) { // by level
        if (cache.type == topology::Cache::Type::instruction || !cache.cpus.contains(cpu)) continue;
        if (cache.level == 1) sizes.first = cache.size_bytes;
        if (core.contains(cache.cpus)) sizes.own = std::max(sizes.own, cache.size_bytes);
        sizes.last = std::max(sizes.last, cache.size_bytes);
    }
    if (sizes.own == 0) sizes.own = sizes.first;
    return sizes;
}

/// The first CPU of `cpus` that is so near; of `other_node` the farthest.
std::optional<unsigned> cpu_at(const Nearness& nearness, const CpuSet& cpus, unsigned home, Near near) {
    for (const unsigned cpu : cpus)
        if (cpu != home && nearness.between(home, cpu) == near) return cpu;
    return std::nullopt;
}

CacheSeats seats_from(const topology::Topology& topology, const Nearness& nearness, const CpuSet& cpus,
                      unsigned home) {
    CacheSeats seats{.home = home,
                     .group = cpu_at(nearness, cpus, home, Near::llc),
                     .other_llc = cpu_at(nearness, cpus, home, Near::node),
                     .other_node = cpu_at(nearness, cpus, home, Near::across),
                     .sizes = sizes_at(topology, home)};
    if (!seats.other_node) seats.other_node = cpu_at(nearness, cpus, home, Near::package);
    return seats;
}

int reached(const CacheSeats& seats) {
    return seats.group.has_value() + seats.other_llc.has_value() + seats.other_node.has_value();
}

void add_refusals(const CpuSet& cpus, CacheSeats& seats) {
    const std::string whom = "CPU " + std::to_string(seats.home) + "'s ";
    const std::string among = " is among " + words_of(cpus) + ", which may be used here";
    if (!seats.group)
        seats.refused.push_back("\"same LLC\" is not measured: no other core of " + whom +
                                "last-level cache" + among);
    if (!seats.other_llc && !seats.other_node)
        seats.refused.push_back("low affinity is not measured: " + sentence_of(Refusal::one_llc, cpus));
    else if (!seats.other_llc)
        seats.refused.push_back("\"other LLC\" is not measured: no CPU of another last-level cache of " +
                                whom + "node" + among);
    else if (!seats.other_node)
        seats.refused.push_back("\"other node\" is not measured: no CPU of another node than " + whom +
                                "own" + among);
}

std::uint64_t whole_lines(std::uint64_t bytes) {
    return std::min(std::max<std::uint64_t>(bytes / line_size, 4) * line_size, most_footprint);
}

std::uint64_t told(int name) { return static_cast<std::uint64_t>(std::max(0L, ::sysconf(name))); }

/// Caches keep what was used often before what is read once, so that twice their size leaves most of it there
/// (measured: 16 % lost after twice the size, 34 % after four times, 43 % after eight, 48 % after sixteen).
constexpr std::uint64_t times_last_level = 8, times_own = 2;
constexpr std::uint64_t small_footprint = 2U << 20U; ///< for which there is always room: a huge page

/// The number behind a key of /proc/meminfo or memory.stat.
std::optional<std::uint64_t> number_of(std::string_view text, std::string_view key) {
    for (const auto line : split(text, '\n')) {
        const auto words = split_words(line);
        if (words.size() >= 2 && words[0] == key) return parse_number<std::uint64_t>(words[1]);
    }
    return std::nullopt;
}

/// The memory that one group leaves; no value: it has no limit. Files that were read some time ago make room.
std::optional<std::uint64_t> left_in_group(const host::Dir& sys, const std::string& group) {
    const auto folder = "fs/cgroup/" + (group.empty() ? group : group + "/");
    std::optional<std::uint64_t> limit;
    for (const auto* name : {"memory.max", "memory.high"}) // a number, or "max"
        if (const auto bytes = sys.number(folder + name); bytes && *bytes >= 0)
            limit = std::min<std::uint64_t>(limit.value_or(*bytes), *bytes);
    const auto current = sys.number(folder + "memory.current");
    if (!limit || !current) return std::nullopt;
    const auto stat = sys.text(folder + "memory.stat");
    const auto inactive = stat ? number_of(*stat, "inactive_file").value_or(0) : 0;
    const auto taken = static_cast<std::uint64_t>(std::max(*current, 0LL));
    return *limit - std::min(*limit, taken - std::min(taken, inactive));
}

/// The document's base vector: a program with a cache footprint of a given size. The lines make one cycle in
/// an order without pattern, and each says where the next is, so that neither prefetching nor out-of-order
/// execution hides that a line is not in the cache: what is lost is an upper bound.
class BaseVector {
  public:
    /// `bytes`: at least four lines. An Error: no memory. When `run` is stopped, both this and touch() return
    /// soon, with their work half done.
    [[nodiscard]] static Result<BaseVector> make(std::uint64_t bytes, const Run& run);

    /// So many lines of the cycle, from where the last walk ended.
    void walk(std::uint64_t steps);
    /// Reads every line of the first `bytes` once, one after the other, which brings them into the cache (and
    /// others out of it).
    void touch(std::uint64_t bytes, const Run& run) const;
    [[nodiscard]] std::uint64_t lines() const { return count_; }
    [[nodiscard]] std::uint64_t bytes() const { return count_ * sizeof(Line); }

  private:
    struct alignas(64) Line {
        std::uint64_t next; ///< index
    };
    struct Free {
        void operator()(Line* lines) const { std::free(lines); }
    };
    BaseVector(std::unique_ptr<Line[], Free> lines, std::uint64_t count)
        : lines_(std::move(lines)), count_(count) {}
    std::unique_ptr<Line[], Free> lines_;
    std::uint64_t count_ = 0, at_ = 0;
};

constexpr std::uint64_t huge_page = 2U << 20U;
constexpr std::uint64_t lines_at_once = 1U << 18U; ///< some milliseconds: how soon it can be stopped

/// In steps, until `run` is stopped.
template <class Work>
void for_lines(std::uint64_t first, std::uint64_t end, const Run& run, const Work& work) {
    while (first < end && !run.is_stopped())
        for (const auto stop = first + std::min(lines_at_once, end - first); first < stop; ++first)
            work(first);
}

/// So much memory in huge pages, where the kernel gives them: else the time to find pages would be measured,
/// too.
void* in_huge_pages(std::uint64_t bytes) {
    const auto whole = (bytes + huge_page - 1) / huge_page * huge_page;
    void* memory = std::aligned_alloc(huge_page, whole);
    if (memory != nullptr) ::madvise(memory, whole, MADV_HUGEPAGE);
    return memory;
}

Result<BaseVector> BaseVector::make(std::uint64_t bytes, const Run& run) {
    const auto count = std::max<std::uint64_t>(bytes / sizeof(Line), 4);
    std::unique_ptr<Line[], Free> lines(static_cast<Line*>(in_huge_pages(count * sizeof(Line))));
    if (!lines) return fail("no memory for a working set", std::to_string(bytes) + " bytes", ENOMEM);
    for_lines(0, count, run, [&](std::uint64_t i) { lines[i].next = i; });
    // Sattolo's shuffle makes one cycle of all lines.
    std::mt19937_64 order(count); // NOLINT(cert-msc51-cpp): the same order each time is wanted
    for_lines(1, count, run, [&](std::uint64_t step) {
        const auto i = count - step;
        std::swap(lines[i].next, lines[order() % i].next);
    });
    return BaseVector(std::move(lines), count);
}

void BaseVector::walk(std::uint64_t steps) {
    std::uint64_t at = at_;
    for (const Line* lines = lines_.get(); steps > 0; --steps)
        at = lines[at].next;
    at_ = at;
}

void BaseVector::touch(std::uint64_t bytes, const Run& run) const {
    const auto lines = std::min(bytes / sizeof(Line), count_);
    std::uint64_t sum = 0;
    for_lines(0, lines, run, [&](std::uint64_t i) { sum += lines_[i].next; });
    volatile std::uint64_t kept = sum; // else nothing would be read
    static_cast<void>(kept);
}

constexpr double short_quantum_ms = 20; ///< a longer one is likely to be disturbed again on a busy machine
constexpr double warm_seconds = 0.002, calibration_seconds = 0.02;
constexpr std::uint64_t steps_at_once = 1U << 16U; ///< some milliseconds at most: how soon it can be stopped
constexpr double bytes_per_second = 8e9;           ///< when a working set is read in order
constexpr double shuffle_seconds = 4e-9;           ///< for one of its bytes

/// The thread that is interrupted, and the one that interrupts it: one thread that does the work of both by
/// turns, since caches do not know the difference, and neither waits for the other on a busy machine.
class Worker {
  public:
    Worker(const CacheSeats& seats, BaseVector vector, const BaseVector& polluter, const Run& run)
        : seats_(seats), vector_(std::move(vector)), polluter_(polluter), run_(run) {}

    /// Measures how long a step takes where the cache is kept.
    Result<void> calibrate() {
        if (auto moved = go_to({seats_.home}); !moved) return moved;
        vector_.touch(vector_.bytes(), run_);
        vector_.walk(std::min(vector_.lines(), 4 * steps_at_once));
        const double begin = thread_seconds();
        std::uint64_t steps = 0;
        double spent = 0;
        do {
            vector_.walk(steps_at_once);
            steps += steps_at_once;
            spent = thread_seconds() - begin;
        } while (spent < calibration_seconds && !run_.is_stopped());
        step_seconds_ = spent / static_cast<double>(steps);
        return {};
    }

    struct Quantum {
        double seconds = 0;
        bool was_disturbed = false;
    };
    /// Takes an interruption and the quantum after it, always at home, so that nothing but what is in the
    /// caches differs: for a move, the thread was elsewhere before.
    Result<Quantum> take(Place place, double quantum_seconds) {
        if (is_move(place)) { // nothing of the working set is to be at home already
            if (auto moved = go_to({seats_.home}); !moved) return std::unexpected(moved.error());
            polluter_.touch(place == Place::group ? 2 * seats_.sizes.own : polluter_.bytes(), run_);
        }
        if (auto moved = go_to({*seats_.of(place)}); !moved) return std::unexpected(moved.error());
        vector_.touch(vector_.bytes(), run_);
        walk_for(warm_seconds);
        if (place == Place::displaced) polluter_.touch(2 * seats_.sizes.own, run_);
        if (place == Place::emptied) polluter_.touch(polluter_.bytes(), run_);
        if (auto moved = go_to({seats_.home}); !moved) return std::unexpected(moved.error());
        const auto switches = preemptions();
        const double begin = thread_seconds();
        walk_for(quantum_seconds);
        return Quantum{thread_seconds() - begin, preemptions() != switches};
    }

  private:
    void walk_for(double seconds) {
        auto left = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(seconds / step_seconds_));
        while (left > 0 && !run_.is_stopped()) {
            const auto now = std::min(left, steps_at_once);
            vector_.walk(now);
            left -= now;
        }
    }
    const CacheSeats& seats_;
    BaseVector vector_;
    const BaseVector& polluter_;
    const Run& run_;
    double step_seconds_ = 1e-9;
};

std::vector<Place> possible_places(const CacheSeats& seats) {
    std::vector<Place> possible;
    for (const Place place : places)
        if (seats.of(place)) possible.push_back(place);
    return possible;
}

/// For the progress bar: the microseconds of a quantum.
std::uint64_t part_of(const CacheCase& one) { return static_cast<std::uint64_t>(one.quantum_ms * 1e3) + 1; }

/// All cases of one working set.
Result<bool> measure_footprint(Worker& worker, std::span<CacheCase> cases, CacheResult& result, Run& run) {
    if (auto done = worker.calibrate(); !done) return std::unexpected(done.error());
    return by_turns(cases, result.how.rounds, run, [&](CacheCase& one) -> Result<void> {
        auto quantum = worker.take(one.place, one.quantum_ms / 1e3);
        if (quantum && quantum->was_disturbed && one.quantum_ms <= short_quantum_ms && !run.is_stopped())
            quantum = worker.take(one.place, one.quantum_ms / 1e3);
        if (!quantum) return std::unexpected(quantum.error());
        if (quantum->was_disturbed) ++result.disturbed;
        one.seconds.push_back(quantum->seconds);
        run.advance(run.done() + part_of(one), run.all());
        return {};
    });
}

/// False: it was stopped.
Result<bool> measure_all(const CacheSeats& seats, CacheResult& result, Run& run) {
    auto polluter = BaseVector::make(result.how.polluter_bytes, run);
    if (!polluter) return std::unexpected(polluter.error());
    std::uint64_t all = 0;
    for (const auto& one : result.cases)
        all += result.how.rounds * part_of(one);
    run.advance(0, all);
    const auto of_each = result.cases.size() / result.how.footprints.size();
    for (std::size_t i = 0; i < result.how.footprints.size(); ++i) {
        auto vector = BaseVector::make(result.how.footprints[i], run);
        if (!vector) return std::unexpected(vector.error());
        if (run.is_stopped()) return false; // the vector may be half made
        Worker worker(seats, std::move(*vector), *polluter, run);
        const auto whole =
            measure_footprint(worker, std::span(result.cases).subspan(i * of_each, of_each), result, run);
        if (!whole || !*whole) return whole;
    }
    return true;
}

const CacheCase* kept_beside(const CacheResult& result, const CacheCase& one) {
    const auto found = std::ranges::find_if(result.cases, [&](const CacheCase& other) {
        return other.footprint == one.footprint && other.quantum_ms == one.quantum_ms &&
               other.place == Place::kept;
    });
    return found == result.cases.end() ? nullptr : &*found;
}

/// Cases and averages both decide the verdict, and there are many more cases: each kind may be wrong half as
/// often as all together.
constexpr unsigned kinds = 2;

/// Only what fits into it can be lost with a cache.
std::uint64_t lost_bytes(const CacheSizes& sizes, Place place) {
    return place == Place::displaced || place == Place::group ? sizes.own : sizes.last;
}

/// By round, the mean over working sets of `most` bytes at most of what a quantum took; each counts as much
/// as any other.
std::vector<double> mean_by_round(const CacheResult& result, Place place, double quantum_ms,
                                  std::uint64_t most) {
    std::vector<double> sums;
    for (const auto& one : result.cases) {
        if (one.place != place || one.quantum_ms != quantum_ms || one.footprint > most) continue;
        const auto* kept = kept_beside(result, one);
        if (kept == nullptr || kept->seconds.empty()) return {};
        const double unit = std::accumulate(kept->seconds.begin(), kept->seconds.end(), 0.0) /
                            static_cast<double>(kept->seconds.size());
        sums.resize(one.seconds.size());
        for (std::size_t i = 0; i < sums.size(); ++i)
            sums[i] += one.seconds[i] / unit;
    }
    return sums;
}

PlaceLoss loss_of(const CacheResult& result, Place place, double quantum_ms, std::uint64_t most_bytes,
                  unsigned comparisons) {
    PlaceLoss loss{.place = place, .quantum_ms = quantum_ms};
    for (const auto& one : result.cases) {
        if (one.place != place || one.quantum_ms != quantum_ms || one.footprint > most_bytes ||
            one.longer.verdict == measure::Verdict::not_enough)
            continue;
        if (one.is_costly()) ++loss.costly;
        if (loss.of++ == 0 || one.longer.change.estimate > loss.most.change.estimate) {
            loss.most = one.longer;
            loss.at = one.footprint;
        }
    }
    loss.mean = measure::compare_times(mean_by_round(result, Place::kept, quantum_ms, most_bytes),
                                       mean_by_round(result, place, quantum_ms, most_bytes), comparisons);
    return loss;
}

bool costs(const CacheResult& result, Place place) {
    return std::ranges::any_of(result.losses,
                               [&](const PlaceLoss& loss) { return loss.place == place && loss.is_shown(); });
}

bool was_measured(const CacheResult& result, Place place) {
    return std::ranges::any_of(result.losses,
                               [&](const PlaceLoss& loss) { return loss.place == place && loss.of > 0; });
}

std::string loss_words(const PlaceLoss& loss) {
    auto text = fmt::format("every {:g} ms, {}: ", loss.quantum_ms, name_of(loss.place));
    if (!loss.is_shown()) return text + "no loss shown";
    return text + fmt::format("{} longer on average, {} at most, with {}; shown for {} of {} working sets",
                              size_words(loss.mean.change), size_words(loss.most.change),
                              bytes_words(loss.at), loss.costly, loss.of);
}

/// "interrupted every 2 ms or every 10 ms": where any of the moves of this place costs.
std::string quanta_words(const CacheResult& result, Place place) {
    std::string text;
    for (const auto& loss : result.losses)
        if (loss.place == place && loss.is_shown())
            text += fmt::format("{}every {:g} ms", text.empty() ? "" : ", ", loss.quantum_ms);
    return text;
}

/// " Moves to another node were not measured."; "": all of these moves were.
std::string unmeasured_words(const CacheResult& result, std::initializer_list<Place> moves) {
    std::string text;
    for (const Place place : moves)
        if (!was_measured(result, place))
            text += (text.empty() ? " Moves " : " and ") +
                    std::string(place == Place::group       ? "to another core of the same last-level cache"
                                : place == Place::other_llc ? "to another last-level cache of the node"
                                                            : "to another node");
    return text.empty() ? text : text + " were not measured.";
}

/// The verdict, the value of `bind` that this machine rewards, and what it means.
void judge_width(CacheResult& result) {
    if (costs(result, Place::group)) {
        result.verdict = "bind: core";
        result.meaning = "bind: core for tasks that are interrupted often (" +
                         quanta_words(result, Place::group) +
                         "): going on at another core costs them their L1 and L2 even within one last-level "
                         "cache. It is an upper bound, as the "
                         "working set is walked without any order; for tasks that run for long at a time "
                         "bind: llc, the default, gives the "
                         "scheduler more room.";
    } else if (costs(result, Place::other_llc)) {
        result.verdict = "bind: llc";
        result.meaning =
            "bind: llc, the default, is what this machine rewards: a move to another last-level cache costs "
            "something (" +
            quanta_words(result, Place::other_llc) + ")" +
            (was_measured(result, Place::group)
                 ? ", and one within a last-level cache nothing that could be shown. bind: core would "
                   "only take room from the scheduler."
                 : "." + unmeasured_words(result, {Place::group}));
    } else if (costs(result, Place::other_node)) {
        const auto unmeasured = unmeasured_words(result, {Place::group, Place::other_llc});
        result.verdict = "bind: node";
        result.meaning = std::string("bind: node is narrow enough here") +
                         (unmeasured.empty() ? ": only a move" : ", as far as this shows: a move") +
                         " to another node was shown to cost something (" +
                         quanta_words(result, Place::other_node) + ")." + unmeasured +
                         " bind: llc, the default, does no harm.";
    } else if (std::ranges::any_of(
                   places, [&](Place place) { return is_move(place) && was_measured(result, place); })) {
        result.meaning = "No verdict: no move was shown to cost more than 1 %. Keep bind: llc, the default." +
                         unmeasured_words(result, {Place::group, Place::other_llc, Place::other_node});
    } else {
        result.meaning = "No verdict: it takes at least four rounds, and another core to go to.";
    }
}

} // namespace

std::string_view name_of(Place place) {
    constexpr std::array names{
        "same CPU", "same CPU, L1/L2 lost", "same CPU, all lost", "same LLC", "other LLC", "other node"};
    return names[static_cast<std::size_t>(place)];
}

std::string_view key_of(Place place) {
    constexpr std::array keys{"kept", "displaced", "emptied", "group", "other_llc", "other_node"};
    return keys[static_cast<std::size_t>(place)];
}

std::optional<unsigned> CacheSeats::of(Place place) const {
    switch (place) {
    case Place::group:
        return group;
    case Place::other_llc:
        return other_llc;
    case Place::other_node:
        return other_node;
    default:
        return home;
    }
}

std::expected<CacheSeats, Refusal> cache_seats(const topology::Topology& topology, const CpuSet& cpus,
                                               const CacheSizes& otherwise) {
    if (cpus.empty()) return std::unexpected(Refusal::one_cpu);
    const Nearness nearness(topology);
    std::optional<CacheSeats> best;
    const auto choose = [&](bool is_recorded) {
        for (const unsigned cpu : cpus) {
            auto seats = seats_from(topology, nearness, cpus, cpu);
            seats.are_sizes_recorded = seats.sizes.first != 0;
            if (seats.are_sizes_recorded != is_recorded) continue;
            if (!best || reached(seats) > reached(*best)) best = std::move(seats);
            if (reached(*best) == 3) break;
        }
    };
    choose(true);
    if (!best && otherwise.first != 0) {
        choose(false);
        best->sizes = otherwise;
    }
    if (!best) return std::unexpected(Refusal::no_caches);
    add_refusals(cpus, *best);
    return *best;
}

std::vector<std::uint64_t> footprints_for(const CacheSizes& sizes) {
    std::vector<std::uint64_t> all{sizes.first / 2, sizes.first, sizes.own / 2, sizes.own,
                                   sizes.last / 2,  sizes.last,  sizes.last * 2};
    all.push_back(static_cast<std::uint64_t>(
        std::sqrt(static_cast<double>(sizes.own) * static_cast<double>(sizes.last))));
    for (auto& bytes : all)
        bytes = whole_lines(bytes);
    std::ranges::sort(all);
    const auto same = std::ranges::unique(all);
    all.erase(same.begin(), same.end());
    return all;
}

std::string bytes_words(std::uint64_t bytes) {
    constexpr std::array units{"KiB", "MiB", "GiB"};
    double size = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    for (; size >= 1024 && unit + 1 < units.size(); ++unit)
        size /= 1024;
    return size < 999.5 ? fmt::format("{:.3g} {}", size, units[unit])
                        : fmt::format("{:.0f} {}", size, units[unit]);
}

CacheSizes sizes_of_c_library() {
    const auto first = told(_SC_LEVEL1_DCACHE_SIZE);
    if (first == 0) return {};
    const auto own = std::max(first, told(_SC_LEVEL2_CACHE_SIZE));
    return {first, own, std::max({own, told(_SC_LEVEL3_CACHE_SIZE), told(_SC_LEVEL4_CACHE_SIZE)})};
}

std::string remark_of_c_library(const CacheSizes& sizes) {
    return fmt::format(
        "the kernel does not say how large the caches are: these are the C library's sizes (getconf -a), of "
        "which the last level, {}, may be that of all cores together; --caches gives others",
        bytes_words(sizes.last));
}

Polluter polluter_for(const CacheSizes& sizes, std::optional<std::uint64_t> available) {
    Polluter polluter{.enough = times_last_level * sizes.last, .available = available};
    polluter.bytes = std::min(polluter.enough, most_polluter);
    if (available) polluter.bytes = std::min(polluter.bytes, *available / 2);
    polluter.bytes = std::max(polluter.bytes, std::min(times_own * sizes.own, most_polluter));
    return polluter;
}

std::string take_out_too_large(std::vector<std::uint64_t>& footprints, const Polluter& polluter) {
    if (!polluter.available) return {};
    const auto rest = *polluter.available - std::min(*polluter.available, polluter.bytes);
    const auto most = std::max(small_footprint, rest / 4 * 3); // the program itself needs some, too
    std::string all;
    for (const auto bytes : footprints)
        if (bytes > most) all += (all.empty() ? "" : ", ") + bytes_words(bytes);
    std::erase_if(footprints, [&](std::uint64_t bytes) { return bytes > most; });
    if (all.empty()) return {};
    return fmt::format(
        "there is no memory for working sets of {} beside the polluter of {}, as {} could be had", all,
        bytes_words(polluter.bytes), bytes_words(*polluter.available));
}

std::optional<std::uint64_t> available_memory(const host::Root& root) {
    std::optional<std::uint64_t> available;
    if (const auto text = root.proc().text("meminfo"))
        if (const auto kib = number_of(*text, "MemAvailable:")) available = *kib << 10U;
    const auto own = root.proc().text("self/cgroup").value_or("");
    for (const auto line : split(own, '\n')) { // "0::/a.slice/b.scope": version 2
        if (!line.starts_with("0::/")) continue;
        for (std::string group(line.substr(4));;
             group.resize(group.find_last_of('/') == std::string::npos ? 0 : group.rfind('/'))) {
            if (const auto left = left_in_group(root.sys(), group))
                available = std::min(available.value_or(*left), *left);
            if (group.empty()) break;
        }
    }
    return available;
}

std::string remark_of(const Polluter& polluter) {
    if (polluter.bytes >= polluter.enough) return {};
    const auto why = polluter.bytes == most_polluter
                         ? std::string("the most that this experiment takes")
                         : fmt::format("as {} of memory could be had", bytes_words(*polluter.available));
    return fmt::format("the polluter reads {}, {}, and it takes {}, {} times the last level, to empty that: "
                       "what it costs to lose the last level may be more than is shown",
                       bytes_words(polluter.bytes), why, bytes_words(polluter.enough), times_last_level);
}

Result<CacheResult> measure_cache(const CacheSeats& seats, const CacheHow& how, Run& run) {
    CacheResult result;
    result.how = how;
    for (const auto footprint : how.footprints)
        for (const double quantum : how.quanta_ms)
            for (const Place place : possible_places(seats))
                result.cases.push_back({{}, footprint, quantum, place});
    if (result.cases.empty()) return result;
    Result<bool> whole = false;
    auto thread = PinnedThread::start({seats.home}, [&] { whole = measure_all(seats, result, run); });
    if (!thread) return std::unexpected(thread.error());
    thread->join();
    if (!whole) return std::unexpected(whole.error());
    result.is_whole = *whole;
    return result;
}

double estimated_seconds(const CacheSeats& seats, const CacheHow& how) {
    const auto polluter = static_cast<double>(how.polluter_bytes);
    const double fill = polluter / bytes_per_second;
    double seconds = polluter * shuffle_seconds;
    for (const auto footprint : how.footprints) {
        seconds += calibration_seconds + static_cast<double>(footprint) * shuffle_seconds;
        for (const Place place : possible_places(seats))
            for (const double quantum : how.quanta_ms)
                seconds += how.rounds *
                           (quantum / 1e3 + warm_seconds + static_cast<double>(footprint) / bytes_per_second +
                            (place >= Place::emptied && place != Place::group ? fill : 0));
    }
    return seconds;
}

bool CacheCase::is_costly() const {
    return longer.verdict == measure::Verdict::more && longer.change.low > little_loss;
}

bool PlaceLoss::is_shown() const {
    return costly >= 2 || (mean.verdict == measure::Verdict::more && mean.change.low > little_loss);
}

void read_cache(CacheResult& result, const CacheSeats& seats, bool is_quiet) {
    const auto compared =
        std::ranges::count_if(result.cases, [](const CacheCase& one) { return one.place != Place::kept; });
    for (auto& one : result.cases)
        compare(one, one.place == Place::kept ? nullptr : kept_beside(result, one),
                kinds * static_cast<unsigned>(compared));
    const auto others = possible_places(seats).size() - 1; // all but `kept`
    for (const double quantum : result.how.quanta_ms)
        for (const Place place : possible_places(seats))
            if (place != Place::kept)
                result.losses.push_back(
                    loss_of(result, place, quantum, lost_bytes(seats.sizes, place),
                            kinds * static_cast<unsigned>(others * result.how.quanta_ms.size())));
    result.verdict = "not known";
    if (is_quiet)
        judge_width(result);
    else
        result.meaning =
            "No verdict: the machine is busy or emulated, as a remark says. Measure again on a quiet one.";
    result.summary = result.verdict;
    for (const auto& loss : result.losses) {
        if (loss.of > 0) result.findings.push_back(loss_words(loss));
        if (is_move(loss.place) && loss.of > 0)
            result.summary += fmt::format("; {:g} ms, {}: {} % (at most {} %)", loss.quantum_ms,
                                          name_of(loss.place), measure::percent(loss.mean.change.estimate, 1),
                                          measure::percent(loss.most.change.estimate, 1));
    }
}

} // namespace affinityd::experiments
