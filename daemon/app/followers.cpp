// SPDX-License-Identifier: Apache-2.0
#include "app/followers.hpp"

namespace affinityd::app {

void Followers::matched(const KnownProcess& process, const inventory::ProcessFacts& facts) {
    parts_.matched(process);
    // The control group is a file: it is read only where a policy is about units.
    if (parts_.current->policy(process.policy).means != policy::Means::cpuset)
        return parts_.units.forget(process.id);
    const auto& cgroup = facts.cgroup();
    // One that could not be read is no other one: the fence stays until the next pass.
    if (facts.is_complete()) parts_.units.observe(process.id, cgroup, process.policy);
}

void Followers::placed(const KnownProcess& process) {
    memory_.follow(process);
    parts_.steering.observe(process);
}

void Followers::left(const KnownProcess& process) {
    memory_.forget(process.id);
    parts_.units.forget(process.id);
}

} // namespace affinityd::app
