// SPDX-License-Identifier: Apache-2.0
#include "state/given_masks.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "state/journal_line.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::state {

namespace {

constexpr std::string_view kind = "given";

std::uint64_t key_of(const GivenMask& given) {
    auto copy = given;
    copy.since = 0;
    return fnv1a_64(to_line(copy));
}

bool may_explain(const GivenMask& given, const CpuSet& wanted, const CpuSet& online, std::uint64_t born) {
    return born >= given.since && (given.mask & online) == wanted;
}

} // namespace

std::string to_line(const GivenMask& given) {
    LineWriter line(kind);
    line.number(given.since).number(given.descent.session).escaped(given.descent.group);
    return line.plain(given.mask.to_list()).plain(given.original.to_list()).escaped(given.policy).finish();
}

std::optional<GivenMask> parse_given(std::string_view line) {
    if (!line.starts_with(kind)) return std::nullopt;
    const auto fields = fields_of(line);
    if (fields.size() != 7 || fields[0] != kind) return std::nullopt;
    const auto since = parse_number<std::uint64_t>(fields[1]);
    const auto session = parse_number<int>(fields[2]);
    auto mask = CpuSet::parse_list(fields[4]);
    auto original = CpuSet::parse_list(fields[5]);
    if (!since || !session || !mask || !original) return std::nullopt;
    return GivenMask{std::move(*mask),
                     std::move(*original),
                     unescaped(fields[6]),
                     {unescaped(fields[3]), *session},
                     *since};
}

bool GivenMasks::add(GivenMask given) {
    const auto key = key_of(given);
    if (places_.contains(key)) return false;
    if (given_.size() < most) {
        places_[key] = given_.size();
        given_.push_back(std::move(given));
        return true;
    }
    places_.erase(key_of(given_[next_]));
    places_[key] = next_;
    given_[next_] = std::move(given);
    next_ = (next_ + 1) % most;
    return true;
}

void GivenMasks::index() {
    places_.clear();
    for (std::size_t i = 0; i < given_.size(); ++i)
        places_[key_of(given_[i])] = i;
}

void GivenMasks::forget(const std::string& policy) {
    const auto is_meant = [&](const GivenMask& given) { return given.policy == policy; };
    if (std::ranges::none_of(given_, is_meant)) return;
    std::rotate(given_.begin(), given_.begin() + static_cast<std::ptrdiff_t>(next_), given_.end());
    std::erase_if(given_, is_meant);
    next_ = 0;
    index();
}

void GivenMasks::clear() {
    given_ = {};
    places_.clear();
    next_ = 0;
}

bool GivenMasks::contains(const CpuSet& mask, const CpuSet& online, std::uint64_t born) const {
    const auto wanted = mask & online;
    return std::ranges::any_of(
        given_, [&](const GivenMask& given) { return may_explain(given, wanted, online, born); });
}

std::optional<MaskSource> GivenMasks::find(const CpuSet& mask, const CpuSet& online, std::uint64_t born,
                                           const Descent& descent) const {
    const auto wanted = mask & online;
    const auto found = std::ranges::find_if(given_, [&](const GivenMask& given) {
        return may_explain(given, wanted, online, born) && descent.may_be_of(given.descent);
    });
    if (found == given_.end()) return std::nullopt;
    return MaskSource{found->original, found->policy};
}

} // namespace affinityd::state
