// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/values/task_row.hpp"

#include <algorithm>

namespace affinityctl {

namespace {

bool comes_before(const TaskRow& a, const TaskRow& b, RowOrder order) {
    switch (order) {
    case RowOrder::share:
        return a.share.value_or(0) > b.share.value_or(0);
    case RowOrder::migrations:
        return a.migrations.value_or(0) > b.migrations.value_or(0);
    case RowOrder::cpu:
        return a.cpu < b.cpu;
    case RowOrder::pid:
        return a.pid < b.pid;
    case RowOrder::name:
        return a.comm < b.comm;
    }
    return false;
}

} // namespace

bool TaskRow::is_astray() const {
    // A thread that sleeps since its mask was changed is still counted on its old CPU: it moves as it wakes.
    // The kernel runs nobody outside his mask.
    const bool has_run = share.value_or(0) > 0 && mask.contains(static_cast<unsigned>(cpu));
    return has_run && !wanted.empty() && !wanted.contains(static_cast<unsigned>(cpu));
}

void sort_rows(std::vector<TaskRow>& rows, RowOrder order, bool reversed) {
    std::ranges::sort(rows, {}, &TaskRow::tid);
    std::ranges::stable_sort(rows, [&](const TaskRow& a, const TaskRow& b) {
        return reversed ? comes_before(b, a, order) : comes_before(a, b, order);
    });
}

} // namespace affinityctl
