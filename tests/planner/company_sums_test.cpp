// SPDX-License-Identifier: Apache-2.0
// What is kept of a company from one question to the next is what looking at all its members would give: on
// random machines, with members that come, go and work.
#include "machines.hpp"
#include "planner/companies.hpp"

#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace affinityd::planner {
namespace {

using Distance = Closeness::Distance;
using Random = std::mt19937;

unsigned below(Random& random, unsigned end) { return static_cast<unsigned>(random()) % end; }

/// Ways as they are defined: over all pairs of CPUs.
Distance way(const Closeness& closeness, const CpuSet& a, const CpuSet& b) {
    Distance sum = 0;
    for (const unsigned from : a)
        for (const unsigned to : b)
            sum += closeness.between(from, to);
    return sum / (a.count() * b.count());
}

/// The best slot, by looking at each slot and each place.
class Straightforward {
  public:
    Straightforward(std::span<const Slot> slots, const Occupied& places, CpuLoad load,
                    const Closeness& closeness)
        : slots_(slots), places_(places), load_(std::move(load)), closeness_(closeness) {
        for (const auto& [cpus, sum, tasks] : places_)
            load_.add(cpus, -sum);
    }
    [[nodiscard]] std::size_t best(const CpuSet* present) const {
        using Rank = std::tuple<Busy, bool, Distance>;
        std::optional<Rank> least;
        std::size_t best = 0;
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            const Rank rank{busy(i), present != nullptr && slots_[i].mask != *present, distance(i)};
            if (least && *least <= rank) continue;
            least = rank;
            best = i;
        }
        return best;
    }

  private:
    using Busy = std::pair<Weight, Weight>;
    [[nodiscard]] Busy busy(std::size_t slot) const {
        const auto& own = slots_[slot].cpus;
        const auto count = static_cast<Weight>(own.count());
        Weight mates = 0;
        for (const auto& [cpus, sum, tasks] : places_)
            if (tasks > 0)
                mates += static_cast<Weight>((cpus & own).count()) * tasks * one_cpu /
                         static_cast<Weight>(cpus.count());
        const auto halves = [](Weight load) { return (load * 2 + one_cpu / 2) / one_cpu * one_cpu / 2; };
        const auto level = load_.place(own.to_vector());
        return {halves(level.core / count) + mates / count, halves(level.cpu / count) + mates / count};
    }
    [[nodiscard]] Distance distance(std::size_t slot) const {
        Distance sum = 0;
        bool has_members = false;
        for (const auto& [cpus, weight, tasks] : places_) {
            if (tasks > 0) sum += tasks * way(closeness_, slots_[slot].cpus, cpus);
            has_members = has_members || tasks > 0;
        }
        return has_members ? sum : to_partner(slot);
    }
    [[nodiscard]] Distance to_partner(std::size_t slot) const {
        std::vector<Busy> all;
        for (std::size_t i = 0; i < slots_.size(); ++i)
            all.push_back(busy(i));
        auto sorted = all;
        std::ranges::sort(sorted);
        auto least = std::numeric_limits<Distance>::max();
        for (std::size_t i = 0; i < slots_.size(); ++i)
            if (i != slot && all[i] <= sorted[1])
                least = std::min(least, way(closeness_, slots_[slot].cpus, slots_[i].cpus));
        return least;
    }
    std::span<const Slot> slots_;
    const Occupied& places_;
    CpuLoad load_;
    const Closeness& closeness_;
};

struct Sitter {
    Companies::Member member;
    unsigned place, own_place;
    Weight weight;
};

/// A company on a random machine, and what a straightforward chooser needs to know of it.
class Life {
  public:
    explicit Life(unsigned seed) : random_(seed), machine_(test::without_smt(2 * (1 + below(random_, 12)))) {
        measure();
        change_slots();
        load_ = CpuLoad(machine_.topology);
        for (unsigned i = below(random_, 8); i > 0; --i)
            load_.add(some_cpus(), below(random_, 2 * one_cpu));
    }
    void run(int steps) {
        for (int i = 0; i < steps; ++i) {
            const auto dice = below(random_, 100);
            if (dice < 50) come();
            if (dice >= 50 && dice < 75 && !sitters_.empty()) go();
            if (dice >= 75 && dice < 93 && !sitters_.empty()) work();
            if (dice >= 93 && dice < 96) measure();
            if (dice >= 96) change_slots();
            if (::testing::Test::HasFailure()) return;
        }
        most_ = std::max(most_, sitters_.size());
    }
    [[nodiscard]] std::size_t most() const { return most_; }

  private:
    [[nodiscard]] CpuSet some_cpus() {
        CpuSet cpus;
        const auto count = static_cast<unsigned>(machine_.topology.online.count());
        for (unsigned i = 1 + below(random_, 3); i > 0; --i)
            cpus.insert(below(random_, count));
        return cpus;
    }
    /// Mostly single CPUs, each once; or sets that may overlap, with a CPU that is not online.
    void change_slots() {
        slots_.clear();
        const bool are_single = below(random_, 3) > 0;
        for (const unsigned cpu : machine_.topology.online) {
            if (below(random_, 8) == 0) continue;
            const CpuSet cpus = are_single ? CpuSet{cpu} : some_cpus();
            slots_.push_back({cpus, cpus | CpuSet{below(random_, 2)}});
        }
        if (!are_single) slots_.push_back({{0, 90}, {0, 90}});
        slots_.push_back({{1}, {1}});
    }
    void measure() {
        std::shared_ptr<const machine::LatencyMatrix> matrix;
        if (below(random_, 4) > 0) {
            topology::Latencies measured(machine_.topology.online);
            for (const unsigned a : machine_.topology.online)
                for (unsigned b = 0; b < a; ++b)
                    measured.set(a, b, 20 + below(random_, 5));
            matrix = std::make_shared<const machine::LatencyMatrix>(std::move(measured));
        }
        closeness_ = std::make_shared<const Closeness>(machine_.topology, std::move(matrix));
    }
    void come() {
        const auto number = companies_.find(id_).value_or(Companies::none);
        const CpuSet mask = some_cpus();
        const CpuSet* present = below(random_, 2) == 0 ? nullptr : &mask;
        const auto expected = Straightforward(slots_, places_, load_, *closeness_).best(present);
        const auto chosen = companies_.best(number, slots_, load_, closeness_, present);
        ASSERT_EQ(chosen, slots_.size() == 1 ? 0 : expected) << sitters_.size() << " members";
        const CpuSet cpus = below(random_, 5) == 0 ? some_cpus() : slots_[chosen].cpus;
        Sitter sitter{{0, {++last_, 1}}, 0, places_.enter(cpus), below(random_, one_cpu)};
        const unsigned company = companies_.join(id_, sitter.member);
        sitter.place = companies_.enter(company, cpus, sitter.weight);
        weigh(sitter.own_place, sitter.weight);
        sitters_.push_back(sitter);
    }
    void go() {
        const auto which = sitters_.begin() + below(random_, static_cast<unsigned>(sitters_.size()));
        weigh(which->own_place, -which->weight);
        places_.leave(which->own_place);
        companies_.exit(*companies_.find(id_), which->place, which->weight);
        companies_.leave(*companies_.find(id_), which->member);
        sitters_.erase(which);
    }
    void work() {
        auto& sitter = sitters_[below(random_, static_cast<unsigned>(sitters_.size()))];
        const Weight more = below(random_, one_cpu / 4);
        sitter.weight += more;
        companies_.weigh(*companies_.find(id_), sitter.place, more);
        weigh(sitter.own_place, more);
    }
    void weigh(unsigned place, Weight more) {
        const auto before = places_[place].sum;
        places_.weigh(place, more);
        load_.add(places_[place].cpus, -before);
        load_.add(places_[place].cpus, places_[place].sum);
    }
    Random random_;
    machine::Machine machine_;
    std::shared_ptr<const Closeness> closeness_;
    std::vector<Slot> slots_;
    CpuLoad load_;
    CompanyId id_{"p", 0, {}};
    Companies companies_;
    Occupied places_; ///< what the company's must be
    std::vector<Sitter> sitters_;
    int last_ = 0;
    std::size_t most_ = 0;
};

TEST(CompanySums, TheBestSlotIsTheOneThatLookingAtAllMembersGives) {
    std::size_t most = 0;
    for (unsigned seed = 0; seed < 150; ++seed) {
        SCOPED_TRACE(seed);
        Life life(seed);
        life.run(seed % 3 == 0 ? 20 : 250);
        most = std::max(most, life.most());
        if (HasFailure()) return;
    }
    EXPECT_GT(most, 64U) << "companies large enough that their sums are kept";
}

TEST(CompanySums, WaysBetweenSetsAreTheMeanOverTheirPairs) {
    Random random(3);
    const auto machine = test::without_smt(16);
    const Closeness closeness(machine.topology, nullptr);
    for (int i = 0; i < 500; ++i) {
        CpuSet a{below(random, 18)}, b{below(random, 18)}; // 16 and 17 are not online
        for (unsigned more = below(random, 3); more > 0; --more)
            (below(random, 2) == 0 ? a : b).insert(below(random, 18));
        EXPECT_EQ(closeness.between(a, b), way(closeness, a, b)) << a.to_list() << " " << b.to_list();
        EXPECT_EQ(closeness.between(a.to_vector(), b.to_vector()), way(closeness, a, b));
    }
}

} // namespace
} // namespace affinityd::planner
