// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace affinityd::host {

/// Asks the scheduler to run this thread soon after it wakes, on a busy machine too: a short slice (0.1 ms;
/// Linux 6.12 on, where it is what lets a waking task go before one that is running) and nice -10. Not
/// inherited by children. We run for microseconds at a time, so nobody else waits longer for it. 0 or errno:
/// a wish, not a need. sched_setattr(2).
int prefer_low_latency();

/// Asks the scheduler to let others go before this thread, for one that works beside the loop: it takes turns
/// of 0.1 ms (Linux 6.12 on; a program that starts on its CPU meanwhile would wait for some 3 ms), and takes
/// no CPU from who runs when it wakes (SCHED_BATCH). Not for one that hands work to and fro with another: it
/// would wait for its turn each time. It has its share all the same: it may hold what others wait for. 0 or
/// errno: a wish, not a need. sched_setattr(2).
int give_way();

} // namespace affinityd::host
