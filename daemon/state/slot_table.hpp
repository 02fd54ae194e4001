// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace affinityd::state {

/// A hash table of slot numbers in somebody else's array: eight bytes a cell, where a node-based map takes
/// forty and more. The owner hashes and compares, since it has the keys. Open addressing with linear probing;
/// the table is at most three quarters full. Hashes should differ in their low bits.
class SlotTable {
  public:
    static constexpr std::uint32_t none = ~0U; ///< no slot

    /// The first slot with this hash for which `is_it(slot)` is true, or none.
    template <class Predicate>
    [[nodiscard]] std::uint32_t find(std::uint32_t hash, Predicate&& is_it) const {
        if (size_ == 0) return none;
        for (std::size_t at = hash & mask();; at = (at + 1) & mask()) {
            const Cell& cell = cells_[at];
            if (cell.slot == none) return none;
            if (cell.hash == hash && is_it(cell.slot)) return cell.slot;
        }
    }
    void insert(std::uint32_t hash, std::uint32_t slot);
    /// The slot must have been inserted with this hash.
    void erase(std::uint32_t hash, std::uint32_t slot);
    void clear();
    /// Calls `use(hash, slot)` for each slot, in no order.
    template <class Use>
    void for_each(Use&& use) const {
        for (const Cell& cell : cells_)
            if (cell.slot != none) use(cell.hash, cell.slot);
    }

    [[nodiscard]] std::size_t size() const { return size_; }

  private:
    struct Cell {
        std::uint32_t hash = 0;
        std::uint32_t slot = none;
    };
    [[nodiscard]] std::size_t mask() const { return cells_.size() - 1; }
    void place(Cell cell);
    std::vector<Cell> cells_; ///< their number is a power of two, or 0
    std::size_t size_ = 0;
};

/// 32 well-mixed bits of a 64-bit value (the finalizer of MurmurHash3).
[[nodiscard]] inline std::uint32_t mix_bits(std::uint64_t value) {
    value ^= value >> 33U;
    value *= 0xff51afd7ed558ccdULL;
    value ^= value >> 33U;
    value *= 0xc4ceb9fe1a85ec53ULL;
    value ^= value >> 33U;
    return static_cast<std::uint32_t>(value);
}

} // namespace affinityd::state
