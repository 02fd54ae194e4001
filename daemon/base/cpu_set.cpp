// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_set.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <charconv>

namespace affinityd {

namespace {

constexpr unsigned bits = 64;
constexpr std::size_t longest_list = 64U << 10; ///< far more than the longest that a kernel prints

std::unexpected<Error> bad(std::string_view text, std::string_view why) {
    return fail("not a CPU list: " + std::string(why), "\"" + std::string(text.substr(0, 64)) + "\"");
}

/// Without zero words at the end.
void trim(std::vector<std::uint64_t>& words) {
    while (!words.empty() && words.back() == 0)
        words.pop_back();
}

} // namespace

CpuSet::CpuSet(std::initializer_list<unsigned> cpus) {
    for (unsigned cpu : cpus)
        insert(cpu);
}

CpuSet CpuSet::range(unsigned first, unsigned last) {
    CpuSet set;
    last = std::min(last, max_cpu);
    if (first > last) return set;
    set.words_.resize(last / bits + 1);
    std::fill(set.words_.begin() + first / bits, set.words_.end(), ~std::uint64_t{0}); // word by word
    set.words_[first / bits] &= ~std::uint64_t{0} << (first % bits);
    set.words_[last / bits] &= ~std::uint64_t{0} >> (bits - 1 - last % bits);
    return set;
}

Result<CpuSet> CpuSet::parse_list(std::string_view text) {
    CpuSet all;
    std::string_view rest = trim_text(text);
    if (rest.size() > longest_list) return bad(text, "it is too long"); // each range may have a million
    if (rest.empty()) return all;
    while (true) {
        const auto comma = rest.find(',');
        const std::string_view item = trim_text(rest.substr(0, comma));
        const auto dash = item.find('-');
        const auto first = parse_number<unsigned>(item.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : parse_number<unsigned>(item.substr(dash + 1));
        if (!first || !last) return bad(text, "expected a number or a range like 0-3");
        if (*first > *last) return bad(text, "the range runs backwards");
        if (*last > max_cpu) return bad(text, "a CPU number is too large");
        all |= range(*first, *last);
        if (comma == std::string_view::npos) return all;
        rest.remove_prefix(comma + 1);
    }
}

Result<CpuSet> CpuSet::parse_mask(std::string_view text) {
    std::string_view rest = trim_text(text);
    if (rest.starts_with("0x")) rest.remove_prefix(2);
    if (rest.empty()) return fail("not a CPU mask: it is empty");
    std::vector<std::uint32_t> groups; // most significant first
    while (true) {
        const auto comma = rest.find(',');
        const std::string_view word = rest.substr(0, comma);
        std::uint32_t value = 0;
        const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
        if (word.empty() || word.size() > 8 || status != std::errc{} || end != word.data() + word.size())
            return fail("not a CPU mask: expected hexadecimal words of 32 bits",
                        "\"" + std::string(text.substr(0, 64)) + "\"");
        groups.push_back(value);
        if (groups.size() > max_cpu / 32 + 1) return fail("not a CPU mask: it is too long");
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
    }
    CpuSet set;
    set.words_.resize((groups.size() + 1) / 2);
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const std::uint64_t group = groups[groups.size() - 1 - i];
        set.words_[i / 2] |= group << (32 * (i % 2));
    }
    trim(set.words_);
    return set;
}

CpuSet CpuSet::from_words(std::span<const std::uint64_t> words) {
    CpuSet set;
    set.words_.assign(words.begin(), words.end());
    trim(set.words_);
    return set;
}

std::string CpuSet::to_list() const {
    std::string text;
    for (unsigned cpu = next(0); cpu < limit();) {
        unsigned last = cpu;
        while (contains(last + 1))
            ++last;
        if (!text.empty()) text += ',';
        text += std::to_string(cpu);
        if (last != cpu) text += '-' + std::to_string(last);
        cpu = next(last + 1);
    }
    return text;
}

std::string CpuSet::to_mask() const {
    if (empty()) return "0";
    std::string text;
    for (std::size_t i = words_.size() * 2; i-- > 0;) {
        const auto group = static_cast<std::uint32_t>(words_[i / 2] >> (32 * (i % 2)));
        if (text.empty() && group == 0) continue;
        char digits[9] = {};
        const std::string word(digits, std::to_chars(digits, digits + 8, group, 16).ptr);
        text += text.empty() ? word : "," + std::string(8 - word.size(), '0') + word;
    }
    return text;
}

std::size_t CpuSet::count() const {
    std::size_t sum = 0;
    for (auto word : words_)
        sum += static_cast<std::size_t>(std::popcount(word));
    return sum;
}

bool CpuSet::contains(unsigned cpu) const {
    return cpu / bits < words_.size() && (words_[cpu / bits] >> (cpu % bits) & 1U) != 0;
}

bool CpuSet::contains(const CpuSet& other) const {
    if (other.words_.size() > words_.size()) return false;
    for (std::size_t i = 0; i < other.words_.size(); ++i)
        if ((other.words_[i] & ~words_[i]) != 0) return false;
    return true;
}

bool CpuSet::intersects(const CpuSet& other) const {
    for (std::size_t i = 0; i < std::min(words_.size(), other.words_.size()); ++i)
        if ((words_[i] & other.words_[i]) != 0) return true;
    return false;
}

unsigned CpuSet::first() const {
    assert(!empty());
    return next(0);
}

unsigned CpuSet::last() const {
    assert(!empty());
    return limit() - 1 - static_cast<unsigned>(std::countl_zero(words_.back()));
}

std::vector<unsigned> CpuSet::to_vector() const { return {begin(), end()}; }

void CpuSet::insert(unsigned cpu) {
    if (cpu > max_cpu) return;
    if (cpu / bits >= words_.size()) words_.resize(cpu / bits + 1);
    words_[cpu / bits] |= std::uint64_t{1} << (cpu % bits);
}

void CpuSet::erase(unsigned cpu) {
    if (cpu / bits >= words_.size()) return;
    words_[cpu / bits] &= ~(std::uint64_t{1} << (cpu % bits));
    trim(words_);
}

CpuSet& CpuSet::operator|=(const CpuSet& other) {
    if (other.words_.size() > words_.size()) words_.resize(other.words_.size());
    for (std::size_t i = 0; i < other.words_.size(); ++i)
        words_[i] |= other.words_[i];
    return *this;
}

CpuSet& CpuSet::operator&=(const CpuSet& other) {
    if (words_.size() > other.words_.size()) words_.resize(other.words_.size());
    for (std::size_t i = 0; i < words_.size(); ++i)
        words_[i] &= other.words_[i];
    trim(words_);
    return *this;
}

CpuSet& CpuSet::operator-=(const CpuSet& other) {
    for (std::size_t i = 0; i < std::min(words_.size(), other.words_.size()); ++i)
        words_[i] &= ~other.words_[i];
    trim(words_);
    return *this;
}

unsigned CpuSet::next(unsigned from) const {
    for (std::size_t i = from / bits; i < words_.size(); ++i) {
        std::uint64_t word = words_[i];
        if (i == from / bits) word &= ~std::uint64_t{0} << (from % bits);
        if (word != 0) return static_cast<unsigned>(i * bits) + static_cast<unsigned>(std::countr_zero(word));
    }
    return limit();
}

CpuSet::Iterator& CpuSet::Iterator::operator++() {
    at_ = set_->next(at_ + 1);
    return *this;
}

} // namespace affinityd
