// SPDX-License-Identifier: Apache-2.0
#include "planner/assignments.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

namespace affinityd::planner {

namespace {

/// Index of the slot of this name; no value if it has gone: its CPU is offline, or the policy says otherwise
/// now.
std::optional<std::size_t> slot_named(std::span<const Slot> slots, unsigned name) {
    for (std::size_t i = 0; i < slots.size(); ++i)
        if (slots[i].cpus.first() == name) return i;
    return std::nullopt;
}

/// How good a slot is for a new task; less is better.
struct Rank {
    bool is_cramped = false;
    std::pair<unsigned, unsigned> peers; ///< of its family, of its distribution
    unsigned idle = 0;                   ///< readers that are there, too
    bool is_other_seat = false;          ///< of seats, the one whose mask it has stays
    Weight core = 0, cpu = 0;            ///< of each CPU on average
    bool is_elsewhere = false;
    unsigned distance = 0;
    Weight group = 0, node = 0;
    friend auto operator<=>(const Rank&, const Rank&) = default;
};

Assignments::Seat* seat_of(Assignments::Seats& seats, const TaskId& task, unsigned table) {
    auto [at, end] = seats.equal_range(task);
    while (at != end && at->second.table != table)
        ++at;
    return at == end ? nullptr : &at->second;
}

const TaskId& family_of(const SlotRequest& request) {
    return request.parent == TaskId{} ? request.process : request.parent;
}

/// Loads that differ by less than an eighth of a CPU are alike.
Weight rounded(Weight load) { return (load * 8 + one_cpu / 2) / one_cpu * one_cpu / 8; }

} // namespace

unsigned Assignments::table_of(const DistributionId& distribution) {
    const auto found = numbers_.find(distribution);
    if (found != numbers_.end()) return found->second;
    const auto unused = std::ranges::find(tables_, nullptr, &Table::id);
    const auto number = static_cast<unsigned>(unused - tables_.begin());
    if (unused == tables_.end()) tables_.emplace_back();
    const auto entry = numbers_.emplace(distribution, number).first;
    tables_[number] =
        Table{.id = &entry->first, .is_of_groups = distribution.kind == DistributionId::Kind::groups};
    return number;
}

void Assignments::count_peer(Seat& seat, bool is_busy, bool is_there) {
    const auto change = [](bool before, bool after) { return before == after ? 0U : after ? 1U : ~0U; };
    const auto busy = change(std::exchange(seat.is_counted, is_busy), is_busy);
    const auto all = change(std::exchange(seat.is_there, is_there), is_there);
    if (busy == 0 && all == 0) return;
    auto& peers = tables_[seat.table].peers;
    for (const auto& family : {TaskId{}, seat.family}) {
        const auto at = peers.try_emplace(peer_key(family, seat.now)).first;
        at->second.busy += busy;
        at->second.all += all;
        if (at->second.busy == 0 && at->second.all == 0) peers.erase(at);
    }
}

Assignments::Peers Assignments::peers(unsigned table, unsigned slot, const TaskId& family) const {
    const auto& counts = tables_[table].peers;
    const auto found = counts.find(peer_key(family, slot));
    return found == counts.end() ? Peers{} : found->second;
}

std::size_t Assignments::best(const SlotRequest& request, unsigned number) {
    auto& table = tables_[number];
    static const CpuLoad::Around none;
    const auto& own = request.unit == SlotRequest::Unit::thread ? table.own : none;
    const bool is_lane = request.unit == SlotRequest::Unit::lane;
    Seat* parent = nullptr;
    if (request.parent != TaskId{})
        for (auto [at, end] = seats_.equal_range(request.parent); at != end; ++at)
            if (at->second.table == number) parent = &at->second;
    const bool was_counted = parent != nullptr && parent->is_counted;
    const bool was_there = parent != nullptr && parent->is_there;
    if (parent != nullptr) count_peer(*parent, false, false);
    std::size_t best = 0;
    std::optional<Rank> least;
    const CpuSet cramped = request.cramped == nullptr ? CpuSet() : (*request.cramped)();
    for (std::size_t i = 0; i < request.slots.size(); ++i) {
        const auto& slot = request.slots[i];
        const unsigned first = slot.cpus.first();
        auto level = load_.place(slot.cpus);
        if (is_lane && base_) { // a reader belongs where the interrupts are
            const auto interrupts = base_->place(slot.cpus);
            level.core -= interrupts.core;
            level.cpu -= interrupts.cpu;
        }
        const auto count = static_cast<Weight>(slot.cpus.count());
        Rank rank{.core = rounded(level.core) / count, .cpu = rounded(level.cpu) / count};
        const auto there = table.is_of_groups ? Peers{} : peers(number, first);
        rank.peers = {table.is_of_groups ? 0 : peers(number, first, family_of(request)).busy, there.busy};
        if (is_lane) rank.idle = there.all;
        const bool is_there = !request.present.empty() && slot.cpus.contains(request.present);
        rank.is_cramped = cramped.contains(slot.cpus) && !is_there;
        rank.is_other_seat = is_lane && slot.mask != request.present;
        const auto first_of = [](const Rank& one) {
            return std::tie(one.is_cramped, one.peers, one.idle, one.is_other_seat, one.core, one.cpu);
        };
        if (least && first_of(*least) < first_of(rank)) continue;
        rank.is_elsewhere = slot.mask != request.present;
        rank.distance = slot.distance;
        if (request.is_near_others) rank.distance = load_.in_group(table.own, first) > 0 ? 0 : 1;
        if (is_lane) rank.distance = 0; // they are in the order in which they are taken
        if (!is_lane) {
            load_.add_surroundings(level, first, own);
            rank.group = level.group;
            rank.node = level.node;
        }
        if (least && *least <= rank) continue;
        least = rank;
        best = i;
    }
    if (parent != nullptr) count_peer(*parent, was_counted, was_there);
    return best;
}

/// The slot that it had has become several, as with a narrower `bind`: all tasks of that slot would crowd the
/// first of them. Or it is a seat with two readers more than another has: there is one reader a core as long
/// as there are cores.
std::size_t Assignments::divided(const SlotRequest& request, Seat& seat, std::size_t chosen) {
    const CpuSet before = seat.cpus;
    const auto parts = std::ranges::count_if(
        request.slots, [&](const Slot& slot) { return slot.cpus.intersects(before) && slot.cpus != before; });
    const auto count = [&](const Slot& slot) { return peers(seat.table, slot.cpus.first()); };
    // Asked once after each change of the world, so that a second look at the same one moves nothing.
    const bool is_asked = std::exchange(seat.dealt_in, world_) != world_;
    bool is_stacked = is_asked && request.unit == SlotRequest::Unit::lane && seat.is_there && !seat.is_moved;
    if (is_stacked) {
        const auto here = count(request.slots[chosen]);
        is_stacked = std::ranges::any_of(request.slots, [&](const Slot& slot) {
            const auto there = count(slot);
            return seat.is_counted ? there.busy + 2 <= here.busy
                                   : there.busy <= here.busy && there.all + 2 <= here.all;
        });
    }
    if (parts < 2 && !is_stacked) return chosen;
    put(seat, nullptr);
    chosen = best(request, seat.table);
    seat.given = request.slots[chosen].cpus.first();
    seat.is_moved = false;
    return chosen;
}

void Assignments::change_load(const Seat& seat, Weight from, Weight to) {
    auto& table = tables_[seat.table];
    if (!table.is_of_groups && !seat.cpus.empty()) load_.change(seat.cpus, from, to, &table.own);
}

void Assignments::put(Seat& seat, const Slot* slot) {
    count_peer(seat, false, false);
    change_load(seat, seat.weight, 0);
    seat.cpus = slot == nullptr ? CpuSet() : slot->cpus;
    if (slot == nullptr) return;
    seat.now = slot->cpus.first();
    count_peer(seat, seat.weight >= idle, seat.workers == 0);
    change_load(seat, 0, seat.weight);
}

/// The task has a seat of this distribution.
std::size_t Assignments::assign_again(const SlotRequest& request, Seat& seat) {
    const auto slots = request.slots;
    seat.cpuset = request.cpuset == nullptr ? CpuSet() : *request.cpuset;
    auto chosen = slot_named(slots, seat.given);
    const auto is_home_full = [&] { // others took the place meanwhile
        const auto given = peers(seat.table, seat.given), now = peers(seat.table, seat.now);
        const bool is_reader = request.unit == SlotRequest::Unit::lane && seat.is_there;
        return seat.is_counted ? given.busy >= now.busy : is_reader && given.all >= now.all;
    };
    if (!chosen || (seat.given != seat.now && is_home_full()))
        if (const auto now = slot_named(slots, seat.now)) chosen = now;
    if (!chosen) chosen = best(request, seat.table);
    if (std::exchange(seat.is_fresh, false)) { // its neighbours have their places by now
        put(seat, nullptr);
        chosen = best(request, seat.table);
        seat.given = slots[*chosen].cpus.first();
    }
    if (!tables_[seat.table].is_of_groups) chosen = divided(request, seat, *chosen);
    note_number(request, seat);
    note_master(request, seat);
    const auto beside = beside_mate(request, seat.table);
    if (beside && *request.number % 2 == 1) {
        chosen = beside;
        seat.given = slots[*chosen].cpus.first();
    }
    const auto& slot = slots[*chosen];
    // The slot it has may have other CPUs by now, or other ones in a cpuset.
    if (seat.cpus != slot.cpus) put(seat, &slot);
    return *chosen;
}

std::size_t Assignments::assign(const SlotRequest& request) {
    const auto slots = request.slots;
    assert(!slots.empty());
    if (slots.size() == 1 && load_.covers(slots[0].cpus)) { // it weighs on all CPUs alike
        if (const auto table = number(request.distribution))
            if (auto* seat = seat_of(seats_, request.task, *table)) put(*seat, &slots[0]);
        return 0;
    }
    const unsigned number = table_of(request.distribution);
    if (auto* seat = seat_of(seats_, request.task, number)) return assign_again(request, *seat);
    Weight weight = one_cpu;
    bool is_weighed = false, is_fresh = false;
    std::optional<std::size_t> kept;
    if (request.group_of != TaskId{} && request.group_of != request.task)
        owners_.insert_or_assign(request.task, request.group_of);
    if (const auto other = under_another_name(request, number); other != seats_.end()) {
        weight = other->second.weight;
        is_weighed = other->second.is_weighed;
        const auto is_plain = [&](unsigned table) {
            return tables_[table].id->kind == DistributionId::Kind::slots;
        };
        is_fresh = is_plain(number) && !is_plain(other->second.table);
        kept = slot_named(slots, other->second.now); // unless others were there before it
        const auto there = kept ? peers(number, slots[*kept].cpus.first()) : Peers{};
        if (there.busy > 0 || (request.unit == SlotRequest::Unit::lane && there.all > 0)) kept.reset();
        erase(other);
    }
    const auto beside = beside_mate(request, number);
    const auto chosen = beside ? *beside : kept ? *kept : best(request, number);
    const unsigned name = slots[chosen].cpus.first();
    ++tables_[number].seats;
    auto& seat = seats_.emplace(request.task, Seat{number, name, name, weight, is_weighed})->second;
    seat.family = family_of(request);
    note_number(request, seat);
    if (request.cpuset != nullptr) seat.cpuset = *request.cpuset;
    seat.dealt_in = world_;
    seat.is_fresh = is_fresh;
    put(seat, &slots[chosen]);
    note_master(request, seat);
    return chosen;
}

/// A master is one as long as it has workers.
void Assignments::note_master(const SlotRequest& request, Seat& seat) {
    if (seat.master != TaskId{} || request.parent == TaskId{}) return;
    auto* master = seat_of(seats_, request.parent, seat.table);
    if (master == nullptr) return;
    seat.master = request.parent;
    if (master->workers++ == 0) count_peer(*master, master->is_counted, false);
}

/// The task has its number from now on, also where a cpuset left no core with two CPUs until now. A second
/// one of that number has none.
void Assignments::note_number(const SlotRequest& request, Seat& seat) {
    if (!request.number || seat.numbered) return;
    if (numbered_.try_emplace({seat.table, request.process, *request.number}, request.task).second)
        seat.numbered = {request.process, *request.number};
}

/// The slot of the other task of its pair; no value: that has none, or has lost it.
std::optional<std::size_t> Assignments::beside_mate(const SlotRequest& request, unsigned table) {
    if (!request.number) return std::nullopt;
    const auto own = numbered_.find({table, request.process, *request.number});
    if (own != numbered_.end() && own->second != request.task) return std::nullopt;
    const auto found = numbered_.find({table, request.process, *request.number ^ 1U});
    const auto* mate = found == numbered_.end() ? nullptr : seat_of(seats_, found->second, table);
    return mate == nullptr ? std::nullopt : slot_named(request.slots, mate->now);
}

/// Where the task was before its process went to another group of the policy, or before other interfaces
/// served it, or none, or it was in another cpuset.
Assignments::Seats::iterator Assignments::under_another_name(const SlotRequest& request, unsigned table) {
    using Kind = DistributionId::Kind;
    const auto are_plain = [](Kind kind) {
        return kind == Kind::lanes || kind == Kind::all_lanes || kind == Kind::slots;
    };
    const auto& own = request.distribution;
    for (auto [at, end] = seats_.equal_range(request.task); at != end; ++at) {
        const auto& id = *tables_[at->second.table].id;
        const bool are_alike = (id.kind == Kind::in_group && own.kind == Kind::in_group) ||
                               (are_plain(id.kind) && are_plain(own.kind));
        if (at->second.table != table && id.policy == own.policy && id.rule == own.rule && are_alike)
            return at;
    }
    return seats_.end();
}

bool Assignments::is_master(const DistributionId& distribution, const TaskId& task) const {
    const auto table = number(distribution);
    for (auto [at, end] = seats_.equal_range(task); table && at != end; ++at)
        if (at->second.table == *table)
            return at->second.workers > 0 && !(at->second.is_weighed && at->second.weight >= idle);
    return false;
}

TaskId Assignments::owner(const TaskId& task) const {
    const auto found = owners_.find(task);
    return found == owners_.end() ? task : found->second;
}

Assignments::Seats::iterator Assignments::erase(Seats::iterator seat) {
    put(seat->second, nullptr);
    if (seat->second.master != TaskId{}) {
        auto* master = seat_of(seats_, seat->second.master, seat->second.table);
        if (master != nullptr && master->workers > 0 && --master->workers == 0)
            count_peer(*master, master->is_counted, !master->cpus.empty());
    }
    if (const auto& numbered = seat->second.numbered) {
        const auto found = numbered_.find({seat->second.table, numbered->first, numbered->second});
        if (found != numbered_.end() && found->second == seat->first) numbered_.erase(found);
    }
    auto& table = tables_[seat->second.table];
    if (--table.seats == 0) {
        numbers_.erase(numbers_.find(*table.id));
        table = {};
    }
    return seats_.erase(seat);
}

void Assignments::drop(const TaskId& task) {
    owners_.erase(task);
    for (auto [at, end] = seats_.equal_range(task); at != end;)
        at = erase(at);
}

void Assignments::drop_policy(std::string_view policy) {
    std::vector<unsigned> gone;
    for (const auto& [id, number] : numbers_)
        if (id.policy == policy) gone.push_back(number);
    for (auto at = seats_.begin(); at != seats_.end();)
        at = std::ranges::find(gone, at->second.table) == gone.end() ? std::next(at) : erase(at);
    for (const unsigned number : gone)
        tables_[number] = {};
    std::erase_if(numbers_, [&](const auto& entry) { return entry.first.policy == policy; });
}

std::optional<unsigned> Assignments::number(const DistributionId& distribution) const {
    const auto found = numbers_.find(distribution);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

void Assignments::weigh(unsigned table, const TaskId& task, Weight weight) {
    auto* seat = seat_of(seats_, task, table);
    if (seat == nullptr) return;
    const Weight before =
        std::exchange(seat->weight, seat->is_weighed ? (seat->weight + weight) / 2 : weight);
    seat->is_weighed = true;
    change_load(*seat, before, seat->weight);
    count_peer(*seat, seat->weight >= idle, seat->is_there);
}

void Assignments::drop_others(const TaskId& task, std::span<const unsigned> tables) {
    for (auto [at, end] = seats_.equal_range(task); at != end;) {
        const unsigned table = at->second.table;
        const bool stays = tables_[table].is_of_groups || std::ranges::find(tables, table) != tables.end();
        at = stays ? std::next(at) : erase(at);
    }
}

void Assignments::use(const std::shared_ptr<const CpuLoad>& base, unsigned world) {
    world_ = world;
    if (base == base_) return;
    base_ = base;
    load_ = base ? *base : CpuLoad();
    for (auto& table : tables_)
        table.own = {};
    for (const auto& [task, seat] : seats_)
        change_load(seat, 0, seat.weight);
}

void Assignments::move(const TaskId& task, unsigned table, unsigned from, const Slot& to) {
    auto* seat = table < tables_.size() ? seat_of(seats_, task, table) : nullptr;
    if (seat == nullptr || seat->now != from) return;
    put(*seat, &to);
    seat->given = seat->now;
    seat->is_moved = true;
}

} // namespace affinityd::planner
