// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd {

/// A set of logical CPU numbers, or of any other small numbers the kernel prints in the same form (NUMA
/// nodes). A set grows as needed, past the C library's 1,024 CPUs. A value; compared as a set, so that two
/// masks of different length or with different leading zeros are equal when they name the same CPUs.
class CpuSet {
  public:
    /// The greatest number a set can hold. Only a bound for hostile text: "0-4294967295" must not eat memory.
    static constexpr unsigned max_cpu = (1U << 20) - 1;

    CpuSet() = default;
    CpuSet(std::initializer_list<unsigned> cpus);
    /// All of first..last, both included.
    static CpuSet range(unsigned first, unsigned last);

    /// The kernel's list form: "0-3,8". Spaces or NULs at the ends and an empty text
    /// (the empty set) are accepted, as sysfs prints them. Source: Documentation/admin-guide/cputopology.rst.
    static Result<CpuSet> parse_list(std::string_view text);
    /// The kernel's mask form: comma-separated 32-bit hexadecimal words, most significant first
    /// ("ff,00000000").
    static Result<CpuSet> parse_mask(std::string_view text);
    /// 64-bit words, least significant first: the form of sched_getaffinity(2) on little-endian machines.
    static CpuSet from_words(std::span<const std::uint64_t> words);

    [[nodiscard]] std::string to_list() const; ///< "0-3,8"; "" for the empty set
    [[nodiscard]] std::string to_mask() const; ///< "ff,00000000"; "0" for the empty set
    /// Least significant word first, without zero words at the end.
    [[nodiscard]] std::span<const std::uint64_t> words() const { return words_; }

    [[nodiscard]] bool empty() const { return words_.empty(); }
    [[nodiscard]] std::size_t count() const;
    [[nodiscard]] bool contains(unsigned cpu) const;
    [[nodiscard]] bool contains(const CpuSet& other) const; ///< other is a subset of this
    [[nodiscard]] bool intersects(const CpuSet& other) const;
    [[nodiscard]] unsigned first() const; ///< lowest member; the set must not be empty
    [[nodiscard]] unsigned last() const;  ///< highest member; the set must not be empty
    [[nodiscard]] std::vector<unsigned> to_vector() const;

    void insert(unsigned cpu); ///< numbers above max_cpu are ignored
    void erase(unsigned cpu);
    CpuSet& operator|=(const CpuSet& other);
    CpuSet& operator&=(const CpuSet& other);
    CpuSet& operator-=(const CpuSet& other);
    friend CpuSet operator|(CpuSet a, const CpuSet& b) { return a |= b; }
    friend CpuSet operator&(CpuSet a, const CpuSet& b) { return a &= b; }
    friend CpuSet operator-(CpuSet a, const CpuSet& b) { return a -= b; }
    friend bool operator==(const CpuSet&, const CpuSet&) = default;
    /// An order for containers only; it follows no meaning.
    friend auto operator<=>(const CpuSet& a, const CpuSet& b) { return a.words_ <=> b.words_; }

    /// Ascending iteration: for (unsigned cpu : set).
    class Iterator {
      public:
        using value_type = unsigned;
        using difference_type = std::ptrdiff_t;
        using iterator_category = std::forward_iterator_tag;
        using pointer = const unsigned*;
        using reference = unsigned;
        Iterator() = default;
        Iterator(const CpuSet* set, unsigned at) : set_(set), at_(at) {}
        unsigned operator*() const { return at_; }
        Iterator& operator++();
        Iterator operator++(int) {
            auto old = *this;
            ++*this;
            return old;
        }
        friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

      private:
        const CpuSet* set_ = nullptr;
        unsigned at_ = 0;
    };
    [[nodiscard]] Iterator begin() const { return {this, next(0)}; }
    [[nodiscard]] Iterator end() const { return {this, limit()}; }

  private:
    [[nodiscard]] unsigned limit() const { return static_cast<unsigned>(words_.size() * 64); }
    [[nodiscard]] unsigned next(unsigned from) const; ///< first member >= from, else limit()
    std::vector<std::uint64_t> words_; ///< the last one is not zero, so that == is set equality
};

} // namespace affinityd

template <>
struct std::hash<affinityd::CpuSet> {
    std::size_t operator()(const affinityd::CpuSet& set) const noexcept {
        std::size_t seed = set.words().size();
        for (auto word : set.words())
            seed ^= word + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2);
        return seed;
    }
};
