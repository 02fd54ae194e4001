// SPDX-License-Identifier: Apache-2.0
#include "state/slot_table.hpp"

#include <utility>

namespace affinityd::state {

namespace {

constexpr std::size_t fewest_cells = 16;

} // namespace

void SlotTable::place(Cell cell) {
    std::size_t at = cell.hash & mask();
    while (cells_[at].slot != none)
        at = (at + 1) & mask();
    cells_[at] = cell;
}

void SlotTable::insert(std::uint32_t hash, std::uint32_t slot) {
    if ((size_ + 1) * 4 > cells_.size() * 3) {
        auto old =
            std::exchange(cells_, std::vector<Cell>(cells_.empty() ? fewest_cells : cells_.size() * 2));
        for (const Cell& cell : old)
            if (cell.slot != none) place(cell);
    }
    place({hash, slot});
    ++size_;
}

void SlotTable::erase(std::uint32_t hash, std::uint32_t slot) {
    if (size_ == 0) return;
    std::size_t hole = hash & mask();
    while (cells_[hole].slot != slot) {
        if (cells_[hole].slot == none) return;
        hole = (hole + 1) & mask();
    }
    // Cells after the hole move up where a search for them would end at the hole.
    for (std::size_t at = (hole + 1) & mask(); cells_[at].slot != none; at = (at + 1) & mask()) {
        const std::size_t wanted = cells_[at].hash & mask();
        if (((at - wanted) & mask()) < ((at - hole) & mask())) continue;
        cells_[hole] = cells_[at];
        hole = at;
    }
    cells_[hole] = {};
    if (--size_ == 0) clear();
}

void SlotTable::clear() {
    cells_ = {};
    size_ = 0;
}

} // namespace affinityd::state
