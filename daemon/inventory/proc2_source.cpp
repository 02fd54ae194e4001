// SPDX-License-Identifier: Apache-2.0
#include "inventory/proc2_source.hpp"

#include <algorithm>

#include <libproc2/pids.h>

namespace affinityd::inventory {

bool list_pids_by_proc2(std::vector<int>& pids) {
    pids_item item = PIDS_ID_PID;
    pids_info* info = nullptr;
    if (procps_pids_new(&info, &item, 1) < 0) return false;
    while (const pids_stack* stack = procps_pids_get(info, PIDS_FETCH_TASKS_ONLY))
        pids.push_back(PIDS_VAL(0, s_int, stack, info));
    procps_pids_unref(&info);
    std::ranges::sort(pids);
    return !pids.empty();
}

} // namespace affinityd::inventory
