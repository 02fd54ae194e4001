// SPDX-License-Identifier: Apache-2.0
// Where affinityctl is built without BPF.
#include "affinityctl/sharers/watch.hpp"

namespace affinityctl {

affinityd::Result<std::unique_ptr<EventWakes>> EventWakes::open(const affinityd::host::Root& /*root*/) {
    return affinityd::fail("this affinityctl is built without BPF");
}

} // namespace affinityctl
