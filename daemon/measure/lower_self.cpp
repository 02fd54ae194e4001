// SPDX-License-Identifier: Apache-2.0
#include "measure/lower_self.hpp"

#include "host/scheduler.hpp"
#include "host/self.hpp"

#include <csignal>
#include <cstdint>
#include <vector>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace affinityd::measure {

CpuSet everywhere() {
    const std::vector<std::uint64_t> words((CpuSet::max_cpu + 1) / 64, ~std::uint64_t{0});
    return CpuSet::from_words(words);
}

bool lower_self(pid_t parent) {
    ::setpriority(PRIO_PROCESS, 0, 10);
    // A child that cannot leave the daemon's CPUs still measures.
    static_cast<void>(host::set_affinity(0, everywhere()));
    if (!host::drop_privileges()) return false;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL); // after the change of user, which clears it
    return ::getppid() == parent;       // else it died before the line above
}

} // namespace affinityd::measure
