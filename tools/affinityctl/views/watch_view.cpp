// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/watch_view.hpp"

#include <algorithm>
#include <iterator>

namespace affinityctl {

bool WatchView::press(Key key, std::size_t rows, std::size_t lines) {
    top_ = top(rows, lines);
    const std::size_t page = std::max<std::size_t>(lines, 1);
    switch (key) {
    case Key::quit:
        return false;
    case Key::up:
        top_ -= top_ > 0 ? 1 : 0;
        break;
    case Key::down:
        ++top_;
        break;
    case Key::page_up:
        top_ -= std::min(top_, page);
        break;
    case Key::page_down:
        top_ += page;
        break;
    case Key::home:
        top_ = 0;
        break;
    case Key::end:
        top_ = rows;
        break;
    case Key::next_order:
        order_ = static_cast<RowOrder>((static_cast<std::size_t>(order_) + 1) % std::size(row_orders));
        break;
    case Key::reverse:
        reversed_ = !reversed_;
        break;
    case Key::pause:
        paused_ = !paused_;
        break;
    case Key::none:
        break;
    }
    return true;
}

std::size_t WatchView::top(std::size_t rows, std::size_t lines) const {
    return std::min(top_, rows > lines ? rows - lines : 0);
}

} // namespace affinityctl
