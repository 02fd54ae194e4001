// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "task_rows.hpp"

#include <string>
#include <vector>

namespace affinityctl {

/// What a person has chosen to see of the rows: pure, so that it can be tested without a terminal.
class WatchView {
  public:
    enum class Key { quit, up, down, page_up, page_down, home, end, next_order, reverse, pause, none };

    /// False: the watch is over. `rows`: how many there are, `lines`: how many the terminal shows, both >= 0.
    bool press(Key key, std::size_t rows, std::size_t lines);

    /// First row to be shown, so that the last line is never left empty without need.
    [[nodiscard]] std::size_t top(std::size_t rows, std::size_t lines) const;
    [[nodiscard]] RowOrder order() const { return order_; }
    [[nodiscard]] bool is_reversed() const { return reversed_; }
    [[nodiscard]] bool is_paused() const { return paused_; }

  private:
    std::size_t top_ = 0;
    RowOrder order_ = RowOrder::share;
    bool reversed_ = false;
    bool paused_ = false;
};

/// Columns of a watch, and the cells of one row under them.
inline const std::vector<std::string> watch_heading{"PID",  "TID",   "NAME",   "POLICY", "ON CPU",
                                                    "MASK", "SHARE", "MIGR/S", "STATE"};
[[nodiscard]] std::vector<std::string> watch_cells(const TaskRow& row);

} // namespace affinityctl
