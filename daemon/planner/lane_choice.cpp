// SPDX-License-Identifier: Apache-2.0
#include "planner/lane_choice.hpp"

#include "machine/near.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace affinityd::planner {

CpuSet cores_of(const topology::Topology& topology, std::span<const Slot> lanes) {
    CpuSet cpus;
    for (const auto& lane : lanes)
        for (const unsigned cpu : lane.cpus)
            cpus |= topology.core_of(cpu);
    return cpus;
}

LaneHome lane_home(const ResolvedPolicy& resolved, const Interfaces& interfaces,
                   std::span<const netdev::Nic* const> nics) {
    const auto& machine = interfaces.machine();
    struct Votes {
        CpuSet near;
        std::size_t nics = 0;
    };
    std::vector<Votes> all;
    LaneHome home;
    for (const bool with_spares : {false, true}) {
        for (const auto* nic : nics) {
            CpuSet near = machine::near_cpus(machine, *nic);
            home.near |= near;
            if (!resolved.allowed.intersects(near) || interfaces.is_spare(*nic) != with_spares) continue;
            auto found = std::ranges::find(all, near, &Votes::near);
            if (found == all.end()) found = all.insert(found, Votes{std::move(near)});
            // One that is near all CPUs alike has no say.
            found->nics += found->near == machine.topology.online ? 0 : 1;
        }
        home.is_of_spares = with_spares && !all.empty();
        if (!all.empty()) break;
    }
    home.first = resolved.allowed;
    if (all.empty()) return home;
    const auto most = std::ranges::min_element(all, {}, [](const Votes& votes) {
        return std::pair(-static_cast<std::ptrdiff_t>(votes.nics), votes.near.first());
    });
    home.near = most->near;
    home.first &= home.near;
    for (const auto& votes : all)
        if (votes.nics > 0) home.others |= votes.near - home.near;
    home.then = home.others & resolved.allowed;
    home.rest = resolved.allowed - home.first - home.then;
    return home;
}

namespace {

/// Knows which of the kept lanes a slot is.
class Kept {
  public:
    explicit Kept(std::span<const Slot> kept) : lanes_(kept.size()) {
        for (std::size_t place = 0; place < kept.size(); ++place)
            for (const unsigned cpu : kept[place].cpus)
                by_cpu_.try_emplace(cpu, place); // of several the first
    }
    [[nodiscard]] std::size_t lanes() const { return lanes_; }
    /// Their number if it is none of them. A core that has lost a sibling, or has it again, is still the same
    /// lane.
    [[nodiscard]] std::size_t place_of(const Slot& slot) const {
        std::size_t place = lanes_;
        for (const unsigned cpu : slot.cpus)
            if (const auto found = by_cpu_.find(cpu); found != by_cpu_.end())
                place = std::min(place, found->second);
        return place;
    }

  private:
    std::size_t lanes_;
    std::unordered_map<unsigned, std::size_t> by_cpu_;
};

/// With `separate`, how many cores the lanes of each cache group leave for their interrupts.
class Rooms {
  public:
    /// `queues`: the first so many lanes need a core for their interrupts, too. Without `separate`, none
    /// does. `lanes`: of other lanes. What else is expected there takes no room: it is often nothing that
    /// runs, and interrupts are not on a worker's core with it.
    Rooms(const ResolvedPolicy& resolved, const topology::Topology& topology, std::size_t queues,
          const CpuLoad& lanes)
        : is_separate_(resolved.policy->separate), allowed_(resolved.allowed), topology_(topology),
          queues_(queues), lanes_(lanes) {}
    /// Each cache group has another number; 0 without `separate`.
    [[nodiscard]] unsigned group_of(unsigned cpu) {
        if (!is_separate_) return 0;
        const CpuSet group = topology_.llc_of(cpu);
        if (group.empty()) return 0;
        const auto [at, is_new] = groups_.try_emplace(group.first() + 1);
        if (is_new) at->second.quiet = count_quiet(group & allowed_);
        return at->first;
    }
    /// 0: one more lane there leaves a core to the interrupts of each; 1: one to those of all; 2: none.
    [[nodiscard]] int crowding(unsigned group) const {
        const auto found = groups_.find(group);
        return found == groups_.end() ? 0 : crowding(found->second);
    }
    /// True if take() makes crowding() there another one.
    [[nodiscard]] bool is_crowded_by_one_more(unsigned group) const {
        const auto found = groups_.find(group);
        return found != groups_.end() && crowding(with_one_more(found->second)) != crowding(found->second);
    }
    void take(unsigned group) {
        const auto found = groups_.find(group);
        if (found == groups_.end()) return;
        found->second = with_one_more(found->second);
        ++taken_;
    }

  private:
    struct Group {
        std::size_t quiet = 0; ///< cores that no other lanes have, nor their interrupts
        std::size_t lanes = 0, interrupts = 0;
    };
    [[nodiscard]] static int crowding(const Group& group) {
        if (group.quiet >= group.lanes + group.interrupts + 2) return 0;
        return group.quiet >= group.lanes + 2 ? 1 : 2;
    }
    [[nodiscard]] Group with_one_more(Group group) const {
        ++group.lanes;
        if (taken_ < queues_) ++group.interrupts;
        return group;
    }
    [[nodiscard]] std::size_t count_quiet(const CpuSet& cpus) const {
        std::set<unsigned> cores;
        for (const unsigned cpu : cpus)
            if (lanes_.on_core(cpu) == 0) cores.insert(lanes_.core_of(cpu));
        return cores.size();
    }
    const bool is_separate_;
    const CpuSet& allowed_;
    const topology::Topology& topology_;
    const std::size_t queues_;
    const CpuLoad& lanes_;
    std::size_t taken_ = 0;
    std::unordered_map<unsigned, Group> groups_;
};

/// Cores that may become lanes, the best first: those that are kept, unless another one may have much less
/// load, then those with the least. One where interrupts would have no core of their own counts as if it had
/// more to do.
class Candidates {
  public:
    /// `load` must outlive it, and change by take() only.
    Candidates(std::vector<Slot> slots, const Kept& kept, bool may_move, CpuLoad& load, Rooms& rooms)
        : slots_(std::move(slots)), kept_(kept), may_move_(may_move), load_(load), rooms_(rooms) {
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            places_.push_back(kept.place_of(slots_[i]));
            on_core_[core_of(i)].push_back(i);
            groups_.push_back(rooms.group_of(slots_[i].cpus.first()));
            in_group_[groups_[i]].push_back(i);
            order_.insert(key(i));
        }
    }
    [[nodiscard]] bool empty() const { return order_.empty(); }
    /// The best, which gets the work of one CPU.
    Slot take() {
        const auto best = std::get<3>(*order_.begin());
        order_.erase(order_.begin());
        std::erase(on_core_[core_of(best)], best);
        std::erase(in_group_[groups_[best]], best);
        const auto& same_core = on_core_[core_of(best)];
        change(same_core, [&] { load_.add({slots_[best].cpus.first()}, one_cpu); });
        if (rooms_.is_crowded_by_one_more(groups_[best]))
            change(in_group_[groups_[best]], [&] { rooms_.take(groups_[best]); });
        else
            rooms_.take(groups_[best]);
        return std::move(slots_[best]);
    }

  private:
    /// Does what gives these other keys.
    void change(const std::vector<std::size_t>& slots, const auto& what) {
        for (const auto i : slots)
            order_.erase(key(i));
        what();
        for (const auto i : slots)
            order_.insert(key(i));
    }
    using Key = std::tuple<Weight, std::size_t, Weight, std::size_t>; ///< the last: which it is
    [[nodiscard]] unsigned core_of(std::size_t i) const { return load_.core_of(slots_[i].cpus.first()); }
    [[nodiscard]] Key key(std::size_t i) const {
        const auto there = load_.on_core(slots_[i].cpus.first()) + rooms_.crowding(groups_[i]) * one_cpu;
        if (!may_move_) return {0, places_[i], there, i};
        return {there - (places_[i] < kept_.lanes() ? much : 0), places_[i], 0, i};
    }

    std::vector<Slot> slots_;
    const Kept& kept_;
    const bool may_move_;
    CpuLoad& load_;
    Rooms& rooms_;
    std::vector<std::size_t> places_; ///< of each slot among those that are kept
    std::vector<unsigned> groups_;    ///< of each slot: its cache group
    std::unordered_map<unsigned, std::vector<std::size_t>> in_group_;
    std::unordered_map<unsigned, std::vector<std::size_t>> on_core_;
    std::set<Key> order_;
};

/// Tasks get near ones first, so these have the first queues.
bool is_lower(const Slot& one, const Slot& other) {
    return std::pair(one.distance, one.cpus.first()) < std::pair(other.distance, other.cpus.first());
}

/// In the order of the lanes that are kept: who comes anew takes the place of one that has gone, or the end.
std::vector<Slot> in_kept_order(std::vector<Slot> lanes, const Kept& kept) {
    std::vector<std::optional<Slot>> places(lanes.size());
    std::vector<Slot> others;
    std::ranges::sort(lanes, is_lower);
    for (auto& lane : lanes) {
        const auto place = kept.place_of(lane);
        if (place < places.size() && place < kept.lanes() && !places[place])
            places[place] = std::move(lane);
        else
            others.push_back(std::move(lane));
    }
    std::vector<Slot> ordered;
    auto other = others.begin();
    for (auto& place : places)
        ordered.push_back(place ? std::move(*place) : std::move(*other++));
    return ordered;
}

/// Who has fewer queues than lanes need not interrupt the first cores, where the interrupts of all others
/// are; and no core far away.
void put_quiet_cores_first(std::vector<Slot>& lanes, std::size_t queues, const LaneLoad& load) {
    std::ranges::stable_sort(lanes, {}, [&](const Slot& slot) {
        return std::pair(slot.distance, load.queues.on_core(slot.cpus.first()));
    });
    const auto rest = lanes.begin() + static_cast<std::ptrdiff_t>(queues);
    std::ranges::sort(lanes.begin(), rest, is_lower);
    std::ranges::sort(rest, lanes.end(), is_lower);
}

/// With `separate`, the CPUs of interrupts that may stay while these lanes are chosen. One on the core of a
/// kept lane is to go.
std::vector<unsigned> staying_interrupts(const ResolvedPolicy& resolved, const LaneDemand& demand,
                                         const topology::Topology& topology) {
    std::vector<unsigned> cpus;
    if (!resolved.policy->separate) return cpus;
    const CpuSet of_lanes = cores_of(topology, demand.kept);
    const auto count = std::min({demand.kept_interrupts.size(), demand.queues, demand.lanes});
    for (const unsigned cpu : demand.kept_interrupts.first(count))
        if (!of_lanes.contains(cpu)) cpus.push_back(cpu);
    return cpus;
}

} // namespace

std::vector<Slot> choose_lanes(const ResolvedPolicy& resolved, const machine::Machine& machine,
                               const LaneHome& home, const LaneDemand& demand, const LaneLoad& load) {
    policy::Placement placement = resolved.placement;
    placement.spread = policy::Spread::core;
    const Kept kept(demand.kept);
    CpuLoad expected = load.expected;
    for (const unsigned cpu : staying_interrupts(resolved, demand, machine.topology))
        expected.add({cpu}, one_cpu);
    Rooms rooms(resolved, machine.topology, demand.queues, load.lanes);
    std::vector<Slot> lanes;
    for (const CpuSet* cpus : {&home.first, &home.then, &home.rest}) {
        if (cpus->empty() || (cpus == &home.rest && !demand.may_be_far)) continue;
        const CpuSet near = cpus == &home.rest ? home.near : CpuSet();
        Candidates candidates(make_slots(machine.topology, placement, *cpus, near), kept, demand.may_move,
                              expected, rooms);
        while (lanes.size() < demand.lanes && !candidates.empty())
            lanes.push_back(candidates.take());
    }
    lanes = in_kept_order(std::move(lanes), kept);
    if (demand.queues < lanes.size() && demand.kept.empty())
        put_quiet_cores_first(lanes, demand.queues, load);
    return lanes;
}

namespace {

/// Where the interrupts of a lane may go with `separate`: its cache group without its core, best without any
/// lane.
CpuSet separate_cpus(const ResolvedPolicy& resolved, const machine::Machine& machine, const CpuSet& of_lanes,
                     unsigned own) {
    const auto& topology = machine.topology;
    const CpuSet others = (topology.llc_of(own) & resolved.allowed) - topology.core_of(own);
    CpuSet free = others - of_lanes;
    return free.empty() ? others : free;
}

/// Finds the CPUs of the interrupts of lanes with `separate`: those that can stay first, so that nobody is
/// given the place of one of them.
class Apart {
  public:
    /// Counts the tasks of the lanes, each after its interrupts are placed: where only cores of lanes are
    /// left, the interrupts of each go to the next one's, and no core takes those of two.
    Apart(std::span<const Slot> lanes, std::vector<CpuSet> choices, const LaneDemand& demand, LaneLoad& load)
        : choices_(std::move(choices)), demand_(demand), load_(load), cpus_(choices_.size()) {
        for (std::size_t i = 0; i < choices_.size(); ++i)
            if (const auto cpu = before(i); cpu && choices_[i].contains(*cpu)) put(i, *cpu);
        for (std::size_t i = 0; i < choices_.size(); ++i) {
            if (!choices_[i].empty() && (!cpus_[i] || demand_.may_move)) {
                if (cpus_[i]) load_.expected.add({*cpus_[i]}, -one_cpu);
                put(i, least_loaded(i));
            }
            if (cpus_[i] || i >= demand.queues) load_.add_tasks(lanes[i].cpus.first());
        }
        for (const auto cpu : cpus_) // what follows counts them
            if (cpu) load_.expected.add({*cpu}, -one_cpu);
    }
    /// No value for a lane without choices.
    [[nodiscard]] std::optional<unsigned> cpu(std::size_t lane) const {
        return lane < cpus_.size() ? cpus_[lane] : std::nullopt;
    }

  private:
    void put(std::size_t lane, unsigned cpu) {
        cpus_[lane] = cpu;
        load_.expected.add({cpu}, one_cpu);
    }
    [[nodiscard]] std::optional<unsigned> before(std::size_t lane) const {
        if (lane >= demand_.kept_interrupts.size()) return std::nullopt;
        return demand_.kept_interrupts[lane];
    }
    /// That which was chosen before, unless another one has much less.
    [[nodiscard]] unsigned least_loaded(std::size_t lane) const {
        return *std::ranges::min_element(choices_[lane], {}, [&](unsigned cpu) {
            auto level = load_.expected.of({cpu});
            if (cpu == before(lane)) level.core -= much;
            return level;
        });
    }
    const std::vector<CpuSet> choices_;
    const LaneDemand& demand_;
    LaneLoad& load_;
    std::vector<std::optional<unsigned>> cpus_;
};

} // namespace

std::vector<unsigned> interrupt_cpus(const ResolvedPolicy& resolved, const machine::Machine& machine,
                                     std::span<const Slot> lanes, const LaneDemand& demand, LaneLoad& load) {
    const bool is_separate = resolved.policy->separate;
    std::vector<CpuSet> choices;
    if (is_separate) {
        choices.resize(lanes.size());
        const CpuSet of_lanes = cores_of(machine.topology, lanes);
        for (std::size_t i = 0; i < std::min(lanes.size(), demand.queues); ++i)
            choices[i] = separate_cpus(resolved, machine, of_lanes, lanes[i].cpus.first());
    }
    const Apart apart(lanes, std::move(choices), demand, load);
    std::vector<unsigned> cpus;
    for (const auto& lane : lanes) {
        const auto number = cpus.size();
        const bool has_queue = number < demand.queues;
        const unsigned cpu = apart.cpu(number).value_or(lane.cpus.first());
        if (has_queue) load.queues.add({cpu}, one_cpu);
        if (has_queue || !is_separate) load.add_interrupts(cpu);
        cpus.push_back(cpu);
    }
    return cpus;
}

} // namespace affinityd::planner
