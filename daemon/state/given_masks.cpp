// SPDX-License-Identifier: Apache-2.0
#include "state/given_masks.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "state/journal_line.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::state {

namespace {

constexpr std::string_view kind = "given", end_kind = "over";

std::uint64_t key_of(const GivenMask& given) {
    auto copy = given;
    copy.since = 0;
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
    auto mask = CpuSet::parse_list(fields[4]);
    auto original = CpuSet::parse_list(fields[5]);
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

bool GivenMasks::add(GivenMask given) {
    const auto key = key_of(given);
    if (places_.contains(key)) return false;
    const auto place = given_.size() < most ? given_.size() : who_makes_room();
    if (place == given_.size()) {
        given_.emplace_back();
    } else {
        places_.erase(key_of(given_[place].mask));
        if (--of_groups_[given_[place].mask.descent.group] == 0)
            of_groups_.erase(given_[place].mask.descent.group);
    }
    places_[key] = place;
    ++of_groups_[given.descent.group];
    given_[place] = {std::move(given), ++added_};
    return true;
}

std::size_t GivenMasks::who_makes_room() const {
    const auto fullest =
        std::ranges::max_element(of_groups_, {}, [](const auto& group) { return group.second; });
    std::size_t oldest = given_.size();
    for (std::size_t i = 0; i < given_.size(); ++i)
        if (given_[i].mask.descent.group == fullest->first &&
            (oldest == given_.size() || given_[i].number < given_[oldest].number))
            oldest = i;
    return oldest;
}

void GivenMasks::index() {
    places_.clear();
    of_groups_.clear();
    for (std::size_t i = 0; i < given_.size(); ++i) {
        places_[key_of(given_[i].mask)] = i;
        ++of_groups_[given_[i].mask.descent.group];
    }
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
    auto& given = given_[place];
    places_.erase(key_of(given.mask));
    given.mask.until = until;
    places_.insert_or_assign(key_of(given.mask), place);
}

void GivenMasks::forget(const std::string& policy) {
    if (std::erase_if(given_, [&](const Given& given) { return given.mask.policy == policy; }) > 0) index();
}

void GivenMasks::clear() { *this = {}; }

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
