// SPDX-License-Identifier: Apache-2.0
#include "state/mask_sources.hpp"

#include "host/boot_clock.hpp"

#include <functional>

namespace affinityd::state {

namespace {

constexpr std::uint32_t generations_kept = 2;
constexpr std::size_t expired_at_a_time = 16;     // with each new former mask
constexpr std::size_t expired_with_a_pass = 4096; // some 100 microseconds
constexpr std::uint64_t grace = 1;                // seconds; a record is changed a moment before the mask is

} // namespace

std::uint32_t MaskSources::hash_of(int pid, const CpuSet& mask) const {
    return mix_bits(std::hash<CpuSet>{}(online_.empty() ? mask : mask & online_) * 31 +
                    static_cast<unsigned>(pid));
}

std::uint32_t MaskSources::find_slot(int pid, const CpuSet& mask, std::uint32_t hash) const {
    return table_.find(
        hash, [&](std::uint32_t at) { return slots_[at].pid == pid && masks_[slots_[at].mask] == mask; });
}

void MaskSources::set_source(Slot& slot, const MaskSource& source) {
    slot.original = masks_.take(source.original);
    slot.policy = policies_.take(source.policy);
    slot.is_kept = source.is_kept;
}

std::uint32_t MaskSources::insert(int pid, const CpuSet& mask, const MaskSource& source,
                                  std::uint64_t since) {
    const auto hash = hash_of(pid, mask);
    auto at = find_slot(pid, mask, hash);
    if (at != none) { // the newest record explains it best
        const Slot before = slots_[at];
        set_source(slots_[at], source);
        masks_.release(before.original);
        policies_.release(before.policy);
        return at;
    }
    if (free_ == none) {
        at = static_cast<std::uint32_t>(slots_.size());
        slots_.emplace_back();
    } else {
        at = free_;
        free_ = slots_[at].younger;
    }
    Slot& slot = slots_[at] = Slot{};
    slot.pid = pid;
    slot.since = since;
    slot.mask = masks_.take(mask);
    set_source(slot, source);
    slot.hash = hash;
    table_.insert(hash, at);
    return at;
}

void MaskSources::erase(std::uint32_t at) {
    Slot& slot = slots_[at];
    table_.erase(slot.hash, at);
    masks_.release(slot.mask);
    masks_.release(slot.original);
    policies_.release(slot.policy);
    slot = Slot{};
    slot.younger = free_;
    free_ = at;
    if (table_.size() > 0) return;
    slots_ = {};
    free_ = none;
}

void MaskSources::link_as_youngest(std::uint32_t at, std::uint64_t until) {
    Slot& slot = slots_[at];
    slot.generation = generation_;
    slot.until = until > 0 ? until : host::ticks_since_boot();
    slot.older = youngest_;
    slot.younger = none;
    (youngest_ == none ? oldest_ : slots_[youngest_].younger) = at;
    youngest_ = at;
    ++former_;
    ++former_of_[slot.pid];
}

void MaskSources::unlink(std::uint32_t at) {
    Slot& slot = slots_[at];
    (slot.older == none ? oldest_ : slots_[slot.older].younger) = slot.younger;
    (slot.younger == none ? youngest_ : slots_[slot.younger].older) = slot.older;
    slot.older = slot.younger = none;
    --former_;
    const auto of_process = former_of_.find(slot.pid);
    if (--of_process->second == 0) former_of_.erase(of_process);
}

void MaskSources::drop_expired(std::size_t most) {
    for (; most > 0 && oldest_ != none; --most) {
        const auto at = oldest_;
        const bool expired = generation_ - slots_[at].generation >= generations_kept;
        if (!expired && former_ <= most_former) return;
        unlink(at);
        erase(at);
    }
}

void MaskSources::add(int pid, const CpuSet& mask, const MaskSource& source, std::uint64_t since) {
    const auto at = insert(pid, mask, source, since);
    const bool was_former = slots_[at].live == 0 && (at == oldest_ || slots_[at].older != none);
    if (was_former) unlink(at);
    ++slots_[at].live;
}

void MaskSources::remove(int pid, const CpuSet& mask) {
    const auto at = find_slot(pid, mask, hash_of(pid, mask));
    if (at == none || slots_[at].live == 0) return;
    if (--slots_[at].live > 0) return;
    link_as_youngest(at);
    drop_expired(expired_at_a_time);
}

void MaskSources::add_former(int pid, const CpuSet& mask, const MaskSource& source, std::uint64_t until) {
    const auto at = insert(pid, mask, source);
    if (slots_[at].live > 0) return;
    const bool was_former = at == oldest_ || slots_[at].older != none;
    if (was_former) unlink(at);
    link_as_youngest(at, until);
    drop_expired(expired_at_a_time);
}

MaskSources::Span MaskSources::span_of(int pid, const CpuSet& mask) const {
    const auto at = find_slot(pid, mask, hash_of(pid, mask));
    return at == none ? Span{} : Span{slots_[at].since, slots_[at].live > 0 ? 0 : slots_[at].until};
}

std::optional<MaskSource> MaskSources::find(int pid, const CpuSet& mask, const CpuSet& online,
                                            std::uint64_t born) {
    use_online(online);
    const CpuSet wanted = mask & online_;
    const auto at = table_.find(hash_of(pid, mask), [&](std::uint32_t slot) {
        const Slot& one = slots_[slot];
        const bool expired = one.live == 0 && (generation_ - one.generation >= generations_kept ||
                                               born > one.until + grace * host::ticks_a_second());
        const bool came_first = born > 0 && born < one.since;
        return one.pid == pid && !expired && !came_first && (masks_[one.mask] & online_) == wanted;
    });
    if (at == none) return std::nullopt;
    return MaskSource{masks_[slots_[at].original], policies_[slots_[at].policy], slots_[at].is_kept};
}

void MaskSources::forget_former(const std::unordered_set<int>& pids) {
    for (auto at = oldest_; at != none;) {
        const auto next = slots_[at].younger;
        if (pids.contains(slots_[at].pid)) {
            unlink(at);
            erase(at);
        }
        at = table_.size() > 0 ? next : none; // else nothing is left to walk over
    }
}

void MaskSources::age() {
    ++generation_;
    drop_expired(expired_with_a_pass);
}

void MaskSources::use_online(const CpuSet& online) {
    if (online == online_) return;
    online_ = online;
    table_.clear();
    for (std::uint32_t at = 0; at < slots_.size(); ++at) {
        Slot& slot = slots_[at];
        if (slot.pid == 0) continue; // free
        slot.hash = hash_of(slot.pid, masks_[slot.mask]);
        table_.insert(slot.hash, at);
    }
}

} // namespace affinityd::state
