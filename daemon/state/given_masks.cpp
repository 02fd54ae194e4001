// SPDX-License-Identifier: Apache-2.0
#include "state/given_masks.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "state/journal_line.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace affinityd::state {

namespace {

constexpr std::string_view kind = "given", end_kind = "over";

/// Of all but the times.
std::uint64_t key_of(const GivenMask& given) {
    auto copy = given;
    copy.since = copy.until = 0;
    return fnv1a_64(to_line(copy));
}

bool may_explain(const GivenMask& given, const CpuSet& wanted, const CpuSet& online, std::uint64_t born) {
    const bool is_over = given.until > 0 && born > given.until;
    return born >= given.since && !is_over && (given.mask & online) == wanted;
}

} // namespace

std::string to_line(const GivenMask& given) {
    LineWriter line(kind);
    line.number(given.since).number(given.descent.session).escaped(given.descent.group);
    line.plain(given.mask.to_list()).plain(given.original.to_list()).escaped(given.policy);
    if (given.until > 0) line.number(given.until);
    return line.finish();
}

std::optional<GivenMask> parse_given(std::string_view line) {
    if (!line.starts_with(kind)) return std::nullopt;
    const auto fields = fields_of(line);
    if (fields.size() < 7 || fields.size() > 8 || fields[0] != kind) return std::nullopt;
    const auto since = parse_number<std::uint64_t>(fields[1]);
    const auto session = parse_number<int>(fields[2]);
    auto mask = parse_cpus(fields[4]);
    auto original = parse_cpus(fields[5]);
    const auto until = fields.size() == 8 ? parse_number<std::uint64_t>(fields[7]) : std::uint64_t{0};
    if (!since || !session || !mask || !original || !until) return std::nullopt;
    return GivenMask{std::move(*mask),
                     std::move(*original),
                     unescaped(fields[6]),
                     {unescaped(fields[3]), *session},
                     *since,
                     *until};
}

std::string to_line(const EndOfGiven& end) {
    return LineWriter(end_kind).number(end.until).escaped(end.policy).finish();
}

std::optional<EndOfGiven> parse_end_of_given(std::string_view line) {
    if (!line.starts_with(end_kind)) return std::nullopt;
    const auto fields = fields_of(line);
    if (fields.size() != 3 || fields[0] != end_kind) return std::nullopt;
    const auto until = parse_number<std::uint64_t>(fields[1]);
    if (!until) return std::nullopt;
    return EndOfGiven{unescaped(fields[2]), *until};
}

bool GivenMasks::is_known(std::uint64_t key, std::uint64_t until) const {
    const auto [first, last] = places_.equal_range(key);
    return std::any_of(first, last, [&](const auto& at) { return given_[at.second].mask.until == until; });
}

/// At the end, or in the place of one that makes room.
std::size_t GivenMasks::place_for(std::uint64_t key) const {
    const auto [first, last] = places_.equal_range(key);
    if (static_cast<std::size_t>(std::distance(first, last)) >= most_lives)
        return std::min_element(first, last,
                                [&](const auto& a, const auto& b) {
                                    return given_[a.second].age() < given_[b.second].age();
                                })
            ->second;
    return given_.size() < most ? given_.size() : who_makes_room();
}

void GivenMasks::count_in(std::size_t place) {
    const auto& mask = given_[place].mask;
    auto& group = groups_[mask.descent.group];
    ++(mask.until > 0 ? group.over : group.in_force);
    if (mask.until > 0) ++over_;
}

void GivenMasks::count_out(std::size_t place) {
    const auto& mask = given_[place].mask;
    const auto group = groups_.find(mask.descent.group);
    --(mask.until > 0 ? group->second.over : group->second.in_force);
    if (mask.until > 0) --over_;
    if (group->second.over + group->second.in_force == 0) groups_.erase(group);
}

bool GivenMasks::add(GivenMask given) {
    const auto key = key_of(given);
    if (is_known(key, given.until)) return false;
    const auto place = place_for(key);
    if (place == given_.size()) {
        given_.emplace_back();
    } else {
        count_out(place);
        const auto [first, last] = places_.equal_range(key_of(given_[place].mask));
        places_.erase(std::find_if(first, last, [&](const auto& at) { return at.second == place; }));
    }
    places_.emplace(key, place);
    given_[place] = {std::move(given), ++added_};
    count_in(place);
    return true;
}

std::size_t GivenMasks::who_makes_room() const {
    const auto of_concern = over_ > 0 ? &Group::over : &Group::in_force;
    const auto fullest =
        std::ranges::max_element(groups_, {}, [&](const auto& group) { return group.second.*of_concern; });
    std::size_t oldest = given_.size();
    for (std::size_t i = 0; i < given_.size(); ++i)
        if ((given_[i].mask.until > 0) == (over_ > 0) && given_[i].mask.descent.group == fullest->first &&
            (oldest == given_.size() || given_[i].age() < given_[oldest].age()))
            oldest = i;
    return oldest;
}

std::vector<std::string> GivenMasks::end(const std::function<bool(const std::string&)>& has_tasks,
                                         std::uint64_t now) {
    std::vector<std::string> ended;
    for (std::size_t place = 0; place < given_.size(); ++place) {
        const auto& mask = given_[place].mask;
        if (mask.until > 0 || has_tasks(mask.policy)) continue;
        if (std::ranges::find(ended, mask.policy) == ended.end()) ended.push_back(mask.policy);
        end(place, now);
    }
    return ended;
}

void GivenMasks::end(std::string_view policy, std::uint64_t until) {
    for (std::size_t place = 0; place < given_.size(); ++place)
        if (given_[place].mask.until == 0 && given_[place].mask.policy == policy) end(place, until);
}

/// Given again, it is another one: in between, somebody else may have set it.
void GivenMasks::end(std::size_t place, std::uint64_t until) {
    count_out(place);
    given_[place].mask.until = until;
    count_in(place);
}

void GivenMasks::forget(const std::string& policy) {
    if (std::erase_if(given_, [&](const Given& given) { return given.mask.policy == policy; }) == 0) return;
    ++shifts_;
    places_.clear();
    groups_.clear();
    over_ = 0;
    for (std::size_t i = 0; i < given_.size(); ++i) {
        places_.emplace(key_of(given_[i].mask), i);
        count_in(i);
    }
}

void GivenMasks::clear() {
    const auto shifts = shifts_;
    *this = {};
    shifts_ = shifts + 1;
}

bool GivenMasks::contains(const CpuSet& mask, const CpuSet& online, std::uint64_t born) const {
    const auto wanted = mask & online;
    return std::ranges::any_of(
        given_, [&](const Given& given) { return may_explain(given.mask, wanted, online, born); });
}

std::optional<MaskSource> GivenMasks::find(const CpuSet& mask, const CpuSet& online, std::uint64_t born,
                                           const Descent& descent) const {
    const auto wanted = mask & online;
    const auto found = std::ranges::find_if(given_, [&](const Given& given) {
        return may_explain(given.mask, wanted, online, born) && descent.may_be_of(given.mask.descent);
    });
    if (found == given_.end()) return std::nullopt;
    return MaskSource{found->mask.original, found->mask.policy};
}

} // namespace affinityd::state
