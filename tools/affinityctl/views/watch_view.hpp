// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/task_row.hpp"

#include <cstddef>

namespace affinityctl {

/// Which of the rows a person has chosen to see. Pure, so that tests need no terminal.
class WatchView {
  public:
    enum class Key { quit, up, down, page_up, page_down, home, end, next_order, reverse, pause, none };

    /// False: the watch is over. `rows` exist, and the terminal shows `lines` of them.
    bool press(Key key, std::size_t rows, std::size_t lines);

    /// First row to show. No line stays empty while there are rows to fill it.
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

} // namespace affinityctl
