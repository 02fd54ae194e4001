// SPDX-License-Identifier: Apache-2.0
// The lane rule: readers, seats, queues, and the packets that are handed on.
#include "planner/lanes.hpp"

#include "planner/slots.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityd::planner {

namespace {

using topology::Topology;

/// A core that may become a seat.
struct Place {
    Slot slot;
    unsigned turn = 0; ///< of places on one core: `bind: cpu` makes each CPU one
    Weight taken = 0;  ///< by readers on its core
    unsigned distance = 0;
    std::size_t side = 0;
    std::size_t before = ~0UL; ///< its number among the seats of before
    Weight work = 0;
    std::size_t crowding = 0; ///< with `separate`: interrupts would find no core of their own
    [[nodiscard]] bool is_new() const { return before == ~0UL; }
};

/// A seat that is dealt, with its queues.
struct Chair {
    const Slot* slot = nullptr;
    CpuSet* arrivals = nullptr;
    const SeatRow* row = nullptr;
    unsigned nearest = 0;          ///< distance of the nearest of its interfaces
    unsigned fed = 0;              ///< queues that bring it packets, of interfaces that carry traffic
    unsigned of_nic = 0, most = 0; ///< queues of the interface that is dealt out
    std::vector<unsigned> cpus{};  ///< of its first, second, ... queue of each interface
};

class Dealer {
  public:
    Dealer(const LaneQuestion& question, LaneLoad& load) : q_(question), load_(load), topology_(q_.topology) {
        for (const auto& nic : q_.nics) {
            lanes_.nics.push_back(nic.name);
            lanes_.ids.push_back(nic.id);
            if (nic.is_spare) lanes_.spares.push_back(nic.name);
            const auto side = std::ranges::find(sides_, nic.near);
            side_of_.push_back(static_cast<std::size_t>(side - sides_.begin()));
            if (side == sides_.end()) {
                sides_.push_back(nic.near);
                distances_.push_back(distances_to(topology_, nic.near));
            }
        }
        lanes_.name = lanes_.nics.front();
        for (const auto& other : q_.others)
            others_.push_back(distances_to(topology_, other));
    }

    NicLanes deal() {
        if (q_.before != nullptr && !q_.serves_tasks)
            for (const auto& row : q_.before->rows)
                if (!row.is_open) load_.add_seats(row, -one_cpu); // they leave
        if (q_.serves_tasks) {
            seat_readers();
            add_open_rows();
        }
        if (q_.before != nullptr) load_.add_queues(*q_.before, -one_cpu);
        if (q_.has_queues) {
            lanes_.queues.resize(q_.nics.size());
            owners_.resize(q_.nics.size());
            gather_chairs();
            for (const bool spares : {false, true}) {
                for (std::size_t nic = 0; nic < q_.nics.size(); ++nic)
                    if (q_.nics[nic].is_spare == spares) deal_queues(nic);
                if (!spares) hand_on();
            }
            for (std::size_t nic = 0; nic < q_.nics.size(); ++nic)
                share_transmit_queues(nic);
            note_arrivals();
        }
        return std::move(lanes_);
    }

  private:
    [[nodiscard]] bool has_readers() const { return lanes_.seats() > 0; }
    [[nodiscard]] bool is_separate() const { return q_.resolved.policy->separate; }
    [[nodiscard]] std::map<unsigned, std::size_t> kept_seats(const std::string& row) const;
    [[nodiscard]] std::vector<Place> places(unsigned rule, const CpuSet& may, const std::string& row,
                                            const std::vector<std::size_t>& sides, bool is_counted) const;
    void add_row(unsigned rule, NicNames nics, CpuSet may, std::optional<std::size_t> count);
    void seat_readers();
    void add_open_rows();
    void gather_chairs();
    [[nodiscard]] std::vector<Chair*> chairs_of(std::size_t nic);
    /// True if a queue belonged to the seat before.
    using HadQueue = std::function<bool(std::size_t place, const Chair& chair)>;
    void find_owners(std::size_t nic, const std::vector<Chair*>& chairs, const HadQueue& had);
    void deal_queues(std::size_t nic);
    [[nodiscard]] CpuSet choice_of(const Chair& chair) const;
    [[nodiscard]] unsigned cpu_for(const Chair& chair, std::optional<unsigned> before, std::size_t queues,
                                   const std::map<unsigned, unsigned>& on_core) const;
    [[nodiscard]] bool is_fed(const Chair& chair) const;
    void hand_on();
    void share_transmit_queues(std::size_t nic);
    void note_arrivals();
    [[nodiscard]] std::vector<QueuePlace> before_of(std::size_t nic) const;
    [[nodiscard]] const SeatRow* before_of(const std::string& row) const;
    [[nodiscard]] std::string name_of(unsigned rule, const NicNames& nics, const CpuSet& may) const;
    [[nodiscard]] QueuePlace* partner(const Chair& chair, std::size_t first_nic, std::size_t last_nic,
                                      bool takes, const std::map<const QueuePlace*, unsigned>& others);

    const LaneQuestion& q_;
    LaneLoad& load_;
    const Topology& topology_;
    NicLanes lanes_;
    std::vector<CpuSet> sides_;                    ///< each once
    std::vector<std::size_t> side_of_;             ///< by interface
    std::vector<std::vector<unsigned>> distances_; ///< by side
    std::vector<std::vector<unsigned>> others_;    ///< of sides of other interfaces
    SeatRow bare_;                                 ///< cores for queues where nobody reads
    std::vector<Chair> chairs_;
    std::vector<std::vector<Chair*>> owners_; ///< by interface and place of queue
    CpuSet seat_cores_;
    bool is_router_ = false; ///< one receive queue, whose readers are not ours
};

/// CPUs of the seats of before, with their numbers in its order: of this row, else of all, else of queues.
std::map<unsigned, std::size_t> Dealer::kept_seats(const std::string& row) const {
    std::map<unsigned, std::size_t> kept;
    const auto keep = [&](const CpuSet& cpus) {
        for (const std::size_t number = kept.size(); const unsigned cpu : cpus)
            kept.try_emplace(cpu, number);
    };
    if (q_.before != nullptr) {
        const bool is_known = before_of(row) != nullptr;
        for (const auto& before : q_.before->rows)
            for (const auto& slot : before.slots)
                if (!before.is_open && (before.name == row || !is_known)) keep(slot.cpus);
        const bool had_readers = !kept.empty();
        for (const auto& nic : q_.before->queues)
            for (const auto& queue : nic)
                if (!had_readers) keep(queue.seat);
    }
    return kept;
}

/// All that may be seats, the best first.
std::vector<Place> Dealer::places(unsigned rule, const CpuSet& may, const std::string& row,
                                  const std::vector<std::size_t>& sides, bool is_counted) const {
    auto asked = q_.resolved.placements[rule];
    asked.spread = policy::Spread::core;
    const auto kept = kept_seats(row);
    std::vector<Place> found;
    std::map<unsigned, unsigned> turns;
    for (auto& slot : make_slots(topology_, asked, may, {})) {
        const unsigned cpu = slot.cpus.first();
        Place place{.turn = turns[load_.expected.core_of(cpu)]++};
        place.distance = ~0U;
        for (const auto side : sides)
            if (const auto distance = distances_[side][cpu]; distance < place.distance)
                place.distance = distance, place.side = side;
        for (const unsigned one : slot.cpus)
            if (const auto before = kept.find(one); before != kept.end())
                place.before = std::min(place.before, before->second);
        // A seat stays though others that keep theirs are there: of two, the one that is dealt later goes.
        const auto& readers = place.is_new() ? load_.readers : load_.dealt;
        place.taken = readers.on_core(cpu) / one_cpu + place.turn;
        place.work = load_.expected.on_core(cpu) * 4 / one_cpu; // a quarter of a CPU is no difference
        slot.distance = place.distance;
        place.slot = std::move(slot);
        found.push_back(std::move(place));
    }
    // In the same CPUs as before, no seat moves because a nearer one has become free.
    const auto* same = before_of(row);
    const bool stays = same != nullptr && same->may == may;
    // Readers move away from others, queues alone do not.
    const bool is_of_readers = has_readers() || is_counted;
    const auto key = [&](const Place& place) {
        return std::tuple(place.crowding, is_of_readers ? place.taken : place.turn, stays && place.is_new(),
                          place.distance);
    };
    const auto by = [&](const auto& least) {
        std::ranges::stable_sort(found, [&](const Place& one, const Place& other) {
            return std::pair(key(one), least(one)) < std::pair(key(other), least(other));
        });
    };
    by([](const Place& place) { return std::pair(place.before, place.work); });
    if (is_separate()) { // half of each cache group is for interrupts, or one core of it
        std::map<unsigned, std::pair<std::size_t, std::size_t>> groups; // by first CPU: quiet cores, seats
        for (const auto& place : found)
            groups[topology_.llc_of(place.slot.cpus.first()).first()].first += place.taken == 0 ? 1 : 0;
        for (auto& place : found) {
            auto& [quiet, seats] = groups[topology_.llc_of(place.slot.cpus.first()).first()];
            ++seats;
            place.crowding = 2 * seats <= quiet ? 0 : seats + 1 <= quiet ? 1 : 2;
        }
        by([](const Place& place) { return std::pair(place.before, place.work); });
    }
    if (sides.size() > 1) { // in turn
        std::map<std::tuple<decltype(key(found[0])), std::size_t>, std::size_t> seats;
        std::vector<std::pair<std::size_t, Place>> turns_of_sides;
        for (auto& place : found)
            turns_of_sides.emplace_back(seats[{key(place), place.side}]++, std::move(place));
        std::ranges::stable_sort(turns_of_sides, [&](const auto& one, const auto& other) {
            return std::pair(key(one.second), one.first) < std::pair(key(other.second), other.first);
        });
        found.clear();
        for (auto& [turn, place] : turns_of_sides)
            found.push_back(std::move(place));
    }
    return found;
}

std::string Dealer::name_of(unsigned rule, const NicNames& nics, const CpuSet& may) const {
    auto name = lanes_.name;
    if (nics != lanes_.nics) name += fmt::format("/{}", fmt::join(nics, ","));
    if (may != q_.resolved.allowed) name += " " + may.to_list();
    return rule == 0 ? name : fmt::format("{} by rule {}", name, rule);
}

/// The readers' seats until now; null: none.
const SeatRow* Dealer::before_of(const std::string& row) const {
    for (std::size_t i = 0; q_.before != nullptr && i < q_.before->rows.size(); ++i)
        if (q_.before->rows[i].name == row && !q_.before->rows[i].is_open) return &q_.before->rows[i];
    return nullptr;
}

/// `count`: of readers; no value: it is not known.
void Dealer::add_row(unsigned rule, NicNames nics, CpuSet may, std::optional<std::size_t> count) {
    std::vector<std::size_t> sides;
    for (std::size_t i = 0; i < q_.nics.size(); ++i)
        if (std::ranges::find(nics, q_.nics[i].name) != nics.end() &&
            std::ranges::find(sides, side_of_[i]) == sides.end())
            sides.push_back(side_of_[i]);
    SeatRow row{.name = name_of(rule, nics, may), .rule = rule};
    if (!count) row.name += " any";
    if (const auto* before = before_of(row.name)) load_.add_seats(*before, -one_cpu);
    auto found = places(rule, may, row.name, sides, count.has_value());
    if (count) {
        found.resize(std::min(found.size(), *count));
        std::ranges::stable_sort(found, {}, &Place::before);
    }
    for (auto& place : found) {
        if (count) {
            load_.readers.add({place.slot.cpus.first()}, one_cpu);
            load_.dealt.add({place.slot.cpus.first()}, one_cpu);
            load_.expected.add({place.slot.cpus.first()}, one_cpu);
        }
        row.slots.push_back(std::move(place.slot));
    }
    row.nics = std::move(nics);
    row.may = std::move(may);
    row.is_open = !count;
    row.arrivals.resize(row.slots.size());
    lanes_.rows.push_back(std::move(row));
}

/// Readers that may use fewer CPUs come first.
void Dealer::seat_readers() {
    std::map<std::tuple<std::size_t, CpuSet, NicNames, unsigned>, std::size_t> rows;
    const auto& allowed = q_.resolved.allowed;
    for (const auto& [readers, count] : q_.readers) {
        if (count == 0 || !q_.resolved.reads(readers.rule)) continue;
        CpuSet may = readers.cpuset.empty() ? allowed : allowed & readers.cpuset;
        if (may.empty()) continue;
        const auto room = may.count();
        rows[{room, std::move(may), readers.nics, readers.rule}] += count;
    }
    std::set<std::string> names;
    for (const auto& [key, count] : rows)
        names.insert(name_of(std::get<3>(key), std::get<2>(key), std::get<1>(key)));
    for (std::size_t i = 0; q_.before != nullptr && i < q_.before->rows.size(); ++i)
        if (const auto& row = q_.before->rows[i]; !row.is_open && !names.contains(row.name))
            load_.add_seats(row, -one_cpu); // these leave
    for (auto& [key, count] : rows) {
        const auto& [room, may, nics, rule] = key;
        const auto all = q_.all_readers.find(may);
        const auto cores = groups_of(topology_, policy::Bind::core, may).size();
        const bool is_crowded = all != q_.all_readers.end() && all->second > cores;
        add_row(rule, nics, may,
                is_crowded ? (cores * count + all->second - 1) / all->second : std::size_t{count});
    }
}

void Dealer::add_open_rows() {
    for (unsigned rule = 0; rule <= q_.resolved.policy->threads.size(); ++rule)
        if (q_.resolved.reads(rule)) add_row(rule, lanes_.nics, q_.resolved.allowed, std::nullopt);
}

/// Seats of readers; without any, the cores that queues go to.
void Dealer::gather_chairs() {
    const auto add = [&](SeatRow& row, std::size_t most) {
        for (std::size_t i = 0; i < std::min(most, row.slots.size()); ++i) {
            const unsigned cpu = row.slots[i].cpus.first();
            if (!has_readers() && seat_cores_.contains(cpu)) continue; // one a core
            unsigned nearest = ~0U; // of the interfaces that are read from there
            for (std::size_t nic = 0; nic < q_.nics.size(); ++nic)
                if (std::ranges::find(row.nics, q_.nics[nic].name) != row.nics.end())
                    nearest = std::min(nearest, distances_[side_of_[nic]][cpu]);
            chairs_.push_back({&row.slots[i], &row.arrivals[i], &row, nearest});
            seat_cores_ |= topology_.core_of(cpu);
        }
    };
    for (auto& row : lanes_.rows)
        if (!row.is_open) add(row, row.slots.size());
    if (!chairs_.empty()) return;
    auto* row = lanes_.rows.empty() ? &bare_ : &lanes_.rows.front();
    std::size_t most = ~0UL;
    if (row == &bare_) {
        std::vector<std::size_t> sides(sides_.size());
        std::iota(sides.begin(), sides.end(), 0U);
        const auto found = places(0, q_.resolved.allowed, "", sides, false);
        for (const auto& place : found)
            if (place.turn == 0) bare_.slots.push_back({place.slot.cpus, place.slot.cpus, place.distance});
        bare_.arrivals.resize(bare_.slots.size());
        bare_.nics = lanes_.nics;
        is_router_ = q_.nics.size() == 1 && std::ranges::count(q_.nics[0].takes, true) == 1;
        if (is_router_) // the cores that are as near as the nearest
            most = std::max(q_.nics[0].takes.size(),
                            static_cast<std::size_t>(std::ranges::count(
                                bare_.slots, bare_.slots.front().distance, &Slot::distance)));
    }
    add(*row, most);
}

/// Seats on the interface's side, if its part of the readers sits there; else all that read from it; all
/// where none reads from it. Without readers the nearest cores, one for each queue.
std::vector<Chair*> Dealer::chairs_of(std::size_t nic) {
    std::vector<Chair*> on_side, reading, all;
    const auto distance = [&](const Chair* chair) {
        return distances_[side_of_[nic]][chair->slot->cpus.first()];
    };
    for (auto& chair : chairs_) {
        const bool reads = std::ranges::find(chair.row->nics, q_.nics[nic].name) != chair.row->nics.end();
        all.push_back(&chair);
        if (reads) reading.push_back(&chair);
        if (reads && distance(&chair) == chair.nearest) on_side.push_back(&chair);
    }
    const auto fair = std::min(q_.nics[nic].takes.size(), reading.size() / sides_.size());
    if (has_readers())
        return reading.empty() ? all : on_side.size() >= std::max<std::size_t>(1, fair) ? on_side : reading;
    std::ranges::stable_sort(all, {}, distance);
    const auto mine = std::ranges::stable_partition(all, [&](const Chair* chair) {
        return std::ranges::none_of(others_, [&](const std::vector<unsigned>& other) {
            return other[chair->slot->cpus.first()] < distance(chair);
        });
    });
    if (mine.begin() != all.begin()) all.erase(mine.begin(), all.end());
    all.resize(std::min(all.size(), q_.nics[nic].takes.size()));
    return all;
}

/// The places of the interface's queues until now; empty: none.
std::vector<QueuePlace> Dealer::before_of(std::size_t nic) const {
    const auto& id = q_.nics[nic].id;
    for (const bool by_number : {true, false}) // an interface that was away has another number
        for (std::size_t i = 0; q_.before != nullptr && i < q_.before->queues.size(); ++i) {
            const auto& other = q_.before->ids[i];
            if (by_number ? other.ifindex == id.ifindex : !id.device.empty() && other.device == id.device)
                return q_.before->queues[i];
        }
    return {};
}

/// The seat of each queue. Where queues cannot be dealt out evenly, seats that had one more keep it; then
/// those that have the fewest get one more.
void Dealer::find_owners(std::size_t nic, const std::vector<Chair*>& chairs, const HadQueue& had) {
    const auto& its = q_.nics[nic];
    const auto queues = its.takes.size();
    const auto least = static_cast<unsigned>(queues / chairs.size());
    std::vector<std::pair<std::tuple<bool, unsigned, unsigned, unsigned, Weight>, Chair*>> more;
    std::map<unsigned, unsigned> on_same; // readers of several rows may share a core
    for (auto* chair : chairs) {
        chair->of_nic = 0;
        unsigned had_before = 0;
        for (std::size_t place = 0; place < queues; ++place)
            had_before += had(place, *chair) ? 1U : 0U;
        const unsigned cpu = chair->slot->cpus.first();
        more.push_back(
            {{had_before <= least, on_same[load_.expected.core_of(cpu)]++, its.is_spare ? 0 : chair->fed,
              distances_[side_of_[nic]][cpu], load_.interrupts.on_core(cpu)},
             chair});
        chair->most = least;
    }
    std::ranges::stable_sort(more, {}, [](const auto& one) { return one.first; });
    for (std::size_t i = 0; i < queues % chairs.size(); ++i)
        ++more[i].second->most;
    auto& owners = owners_[nic] = std::vector<Chair*>(queues);
    for (std::size_t place = 0; place < queues; ++place)
        for (auto* chair : chairs)
            if (owners[place] == nullptr && had(place, *chair) && chair->of_nic < chair->most)
                ++chair->of_nic, owners[place] = chair;
    for (auto& owner : owners)
        if (owner == nullptr) {
            owner = *std::ranges::min_element(chairs, {}, [](const Chair* chair) {
                return std::pair(chair->of_nic >= chair->most, chair->of_nic);
            });
            ++owner->of_nic;
        }
}

void Dealer::deal_queues(std::size_t nic) {
    const auto& its = q_.nics[nic];
    const auto chairs = chairs_of(nic);
    if (chairs.empty()) return;
    const auto before = before_of(nic);
    const auto is_here = [&](const std::string& row) {
        return std::ranges::any_of(chairs, [&](const Chair* chair) { return chair->row->name == row; });
    };
    const auto had = [&](std::size_t place, const Chair& chair) {
        return place < before.size() && chair.slot->cpus.intersects(before[place].seat) &&
               (chair.row->name == before[place].row || !is_here(before[place].row));
    };
    const auto queues = its.takes.size();
    find_owners(nic, chairs, had);
    auto& owners = owners_[nic];
    for (auto* chair : chairs)
        chair->of_nic = 0;
    std::map<unsigned, unsigned> on_core;
    std::vector<QueuePlace> dealt(queues);
    for (const bool is_kept : {true, false})
        for (std::size_t place = 0; place < queues; ++place) {
            auto& chair = *owners[place];
            if ((had(place, chair) && choice_of(chair).contains(before[place].cpu)) != is_kept) continue;
            if (is_separate() && q_.serves_tasks) chair.of_nic = 0; // one CPU for all of a reader's queues
            if (chair.of_nic == chair.cpus.size()) {
                const auto cpu = cpu_for(chair, is_kept ? std::optional(before[place].cpu) : std::nullopt,
                                         queues, on_core);
                chair.cpus.push_back(cpu);
                load_.interrupts.add({cpu}, one_cpu);
                if (!seat_cores_.contains(cpu) || !has_readers()) load_.expected.add({cpu}, one_cpu);
            }
            const unsigned cpu = chair.cpus[chair.of_nic++];
            ++on_core[load_.expected.core_of(cpu)];
            const bool is_wide = !is_separate() && q_.serves_tasks && !chair.slot->cpus.contains(cpu);
            dealt[place] = {.cpu = cpu,
                            .seat = chair.slot->cpus,
                            .row = chair.row->name,
                            .handed_to = {},
                            .sent_from =
                                is_wide ? topology_.core_of(cpu) & chair.slot->mask : chair.slot->cpus};
            if (its.takes[place] && !its.is_spare) ++chair.fed;
        }
    lanes_.queues[nic] = std::move(dealt);
}

/// The CPUs that may take the interrupts of a seat's queues.
CpuSet Dealer::choice_of(const Chair& chair) const {
    const unsigned own = chair.slot->cpus.first();
    if (!has_readers()) return chair.slot->cpus;
    CpuSet choice;
    if (is_separate() && q_.serves_tasks) {
        const CpuSet group = topology_.llc_of(own) & q_.resolved.allowed;
        choice = group - seat_cores_;
        if (choice.empty()) choice = group - topology_.core_of(own);
    } else if (!topology_.core_of(own).contains(chair.slot->mask)) {
        choice = chair.slot->mask;
    }
    return choice.empty() ? CpuSet{own} : choice;
}

/// The CPU for the next queue of a seat.
unsigned Dealer::cpu_for(const Chair& chair, std::optional<unsigned> before, std::size_t queues,
                         const std::map<unsigned, unsigned>& on_core) const {
    const auto& own = chair.slot->cpus;
    const CpuSet choice = choice_of(chair);
    if (!has_readers()) { // siblings in turn: two are on one CPU only where no sibling is left
        if (before && std::ranges::find(chair.cpus, *before) == chair.cpus.end()) return *before;
        const auto cpus = own.to_vector();
        return cpus[chair.cpus.size() % cpus.size()];
    }
    if (before && choice.contains(*before)) { // unless queues would use fewer cores than they may
        std::set<unsigned> cores;
        for (const unsigned cpu : choice)
            cores.insert(load_.expected.core_of(cpu));
        const auto here = on_core.find(load_.expected.core_of(*before));
        if (here == on_core.end() || here->second * cores.size() < queues) return *before;
    }
    std::optional<unsigned> best;
    std::tuple<unsigned, bool, Weight> least;
    for (const unsigned cpu : choice) {
        if ((topology_.core_of(cpu) & choice).first() != cpu) continue;
        const auto here = on_core.find(load_.expected.core_of(cpu));
        const std::tuple rank{here == on_core.end() ? 0 : here->second, !own.contains(cpu),
                              load_.expected.on_core(cpu) + load_.interrupts.on_core(cpu)};
        if (!best || rank < least) best = cpu, least = rank;
    }
    return *best;
}

/// The queue that a seat without one shares: near it first, with the fewest others. Null: none.
QueuePlace* Dealer::partner(const Chair& chair, std::size_t first_nic, std::size_t last_nic, bool takes,
                            const std::map<const QueuePlace*, unsigned>& others) {
    QueuePlace* best = nullptr;
    std::pair<bool, unsigned> least;
    for (std::size_t nic = first_nic; nic < last_nic; ++nic) {
        const auto& its = q_.nics[nic];
        if (std::ranges::find(chair.row->nics, its.name) == chair.row->nics.end()) continue;
        if (takes && (its.is_spare || !its.hands_on)) continue;
        for (std::size_t place = 0; place < lanes_.queues[nic].size(); ++place) {
            if (takes && !its.takes[place]) continue;
            auto& queue = lanes_.queues[nic][place];
            const auto count = others.find(&queue);
            const std::pair rank{!topology_.node_cpus_of(queue.cpu).contains(chair.slot->cpus.first()),
                                 count == others.end() ? 0 : count->second};
            if (best == nullptr || rank < least) best = &queue, least = rank;
        }
    }
    return best;
}

/// A queue of an interface that it reads from belongs to its core, be it as another reader's.
bool Dealer::is_fed(const Chair& chair) const {
    for (std::size_t nic = 0; nic < q_.nics.size(); ++nic)
        for (std::size_t place = 0; place < lanes_.queues[nic].size(); ++place)
            if (!q_.nics[nic].is_spare && q_.nics[nic].takes[place] &&
                lanes_.queues[nic][place].seat.intersects(chair.slot->cpus) &&
                std::ranges::find(chair.row->nics, q_.nics[nic].name) != chair.row->nics.end())
                return true;
    return false;
}

void Dealer::hand_on() {
    if (!q_.resolved.policy->steering || (!has_readers() && !is_router_)) return;
    std::map<const QueuePlace*, unsigned> others;
    for (auto& chair : chairs_) {
        if (is_fed(chair)) continue;
        auto* queue = partner(chair, 0, q_.nics.size(), true, others);
        if (queue == nullptr) continue;
        ++others[queue];
        queue->handed_to |= queue->seat | chair.slot->cpus;
        if (q_.resolved.rps.empty()) *chair.arrivals |= CpuSet{chair.slot->cpus.first()};
    }
}

/// A seat that has no queue of the interface sends by one that it shares.
void Dealer::share_transmit_queues(std::size_t nic) {
    if (!has_readers() && !is_router_) return;
    CpuSet sending;
    for (const auto& queue : lanes_.queues[nic])
        sending |= queue.sent_from;
    std::map<const QueuePlace*, unsigned> others;
    for (auto& chair : chairs_) {
        if (sending.intersects(chair.slot->cpus)) continue;
        auto* queue = partner(chair, nic, nic + 1, false, others);
        if (queue == nullptr) continue;
        ++others[queue];
        queue->sent_from |= chair.slot->cpus;
    }
}

/// With `rps` they are on CPUs that have nothing to do with seats.
void Dealer::note_arrivals() {
    if (!q_.resolved.rps.empty()) return;
    for (std::size_t nic = 0; nic < q_.nics.size(); ++nic)
        for (std::size_t place = 0; place < lanes_.queues[nic].size(); ++place) {
            const auto& queue = lanes_.queues[nic][place];
            if (!q_.nics[nic].takes[place]) continue;
            *owners_[nic][place]->arrivals |=
                CpuSet{queue.handed_to.empty() ? queue.cpu : queue.seat.first()};
            for (auto& row : lanes_.rows)
                for (std::size_t i = 0; row.is_open && i < row.slots.size(); ++i)
                    if (row.slots[i].cpus.contains(queue.cpu)) row.arrivals[i] |= CpuSet{queue.cpu};
        }
    for (auto& chair : chairs_) // packets for it come to a queue that it shares
        for (const auto& nic : lanes_.queues)
            for (const auto& queue : nic)
                if (chair.arrivals->empty() && queue.sent_from.intersects(chair.slot->cpus))
                    *chair.arrivals |= CpuSet{queue.cpu};
}

} // namespace

void LaneLoad::add_seats(const SeatRow& row, Weight amount) {
    for (const auto& slot : row.slots) {
        readers.add({slot.cpus.first()}, amount);
        expected.add({slot.cpus.first()}, amount);
    }
}

void LaneLoad::add_queues(const NicLanes& lanes, Weight amount) {
    CpuSet cpus, seats;
    for (const auto& nic : lanes.queues)
        for (const auto& queue : nic)
            cpus.insert(queue.cpu);
    for (const auto& row : lanes.rows)
        for (const auto& slot : row.slots)
            if (!row.is_open) seats |= slot.cpus;
    for (const unsigned cpu : cpus - seats)
        expected.add({cpu}, amount);
}

void LaneLoad::add_kept(const NicLanes& lanes) {
    add_queues(lanes, one_cpu);
    for (const auto& row : lanes.rows)
        if (!row.is_open) add_seats(row, one_cpu);
}

NicLanes deal_lanes(const LaneQuestion& question, LaneLoad& load) { return Dealer(question, load).deal(); }

} // namespace affinityd::planner
