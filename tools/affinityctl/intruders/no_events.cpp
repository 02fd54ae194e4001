// SPDX-License-Identifier: Apache-2.0
// Where this is built without BPF.
#include "affinityctl/intruders/watch.hpp"

namespace affinityctl {

affinityd::Result<std::unique_ptr<IntruderWatch>>
IntruderWatch::by_events(const affinityd::host::Root& /*root*/, const affinityd::CpuSet& /*cpus*/) {
    return affinityd::fail("this program is built without BPF");
}

} // namespace affinityctl
