// SPDX-License-Identifier: Apache-2.0
#include "app/serving.hpp"

#include "inventory/process_sockets.hpp"
#include "inventory/socket_table.hpp"
#include "planner/place.hpp"

#include <algorithm>
#include <chrono>
#include <set>

namespace affinityd::app {

namespace {

using netdev::Nic;
using policy::Policy;
using Sockets = inventory::SocketTable;

/// Interfaces that a wildcard listener may be reached by: those that are up and belong to a device. Loopback,
/// bridges and other virtual ones count only where the policy names them.
bool may_serve(const Nic& nic) { return nic.up && !nic.device.empty(); }

using Inodes = std::vector<std::uint64_t>; // ascending

std::vector<std::string> by_sockets(const planner::Machine& machine, const Sockets& sockets,
                                    const Inodes& inodes) {
    std::set<std::string> names;
    bool wildcard = false;
    for (const auto inode : inodes) {
        const auto* socket = sockets.find(inode);
        if (socket == nullptr) continue;
        if (socket->local.is_any()) {
            wildcard = wildcard || socket->listens();
            continue;
        }
        const auto local = socket->local.to_text();
        for (const auto& nic : machine.nics)
            if (nic.name != "lo" && std::ranges::find(nic.addresses, local) != nic.addresses.end())
                names.insert(nic.name);
    }
    // Connections say more than the listener: only without any is every interface taken.
    if (names.empty() && wildcard)
        for (const auto& nic : machine.nics)
            if (may_serve(nic)) names.insert(nic.name);
    return {names.begin(), names.end()};
}

/// What the process's sockets say, cut to the interfaces that the policy is about.
std::vector<std::string> nics_of(const host::Root& root, const World& world, const Policy& policy,
                                 const Sockets& sockets, int pid) {
    if (policy.nics_auto)
        return by_sockets(world.machine(), sockets, inventory::socket_inodes(root, pid).value_or(Inodes{}));
    const auto named = planner::policy_nics(policy, world.machine(), {});
    if (named.size() < 2) return named;
    std::vector<std::string> both;
    for (const auto& name :
         by_sockets(world.machine(), sockets, inventory::socket_inodes(root, pid).value_or(Inodes{})))
        if (std::ranges::find(named, name) != named.end()) both.push_back(name);
    return both.empty() ? named : both;
}

} // namespace

planner::Serving find_serving(const host::Root& root, const World& world, TaskTable& tasks) {
    planner::Serving serving;
    std::optional<Sockets> sockets; // read once, and only if somebody asks
    for (auto& [pid, process] : tasks.processes()) {
        const Policy& policy = world.policies().policies[process.policy];
        if (policy.model != policy::Model::full && policy.model != policy::Model::irq) continue;
        if (!sockets) {
            sockets.emplace(root, inventory::Wanted::all);
            sockets->step([] { return false; });
        }
        process.nics = nics_of(root, world, policy, *sockets, pid);
        const auto units = planner::deals_threads(policy.placement) ? process.threads.size() : 1;
        for (const auto& nic : process.nics)
            serving[policy.name][nic] += static_cast<unsigned>(units);
    }
    return serving;
}

planner::Serving find_used_nics(const host::Root& root, const World& world, const TaskTable& tasks,
                                int& next) {
    constexpr unsigned most_asked = 16; // of a policy: workers of one program are alike
    constexpr std::size_t most_descriptors = 256;
    constexpr std::size_t most_looked_at = 4096; // sockets
    constexpr std::chrono::milliseconds most_time{8};
    const auto until = std::chrono::steady_clock::now() + most_time;
    planner::Serving used;
    std::map<std::size_t, unsigned> asked;
    std::optional<Sockets> sockets;
    const auto& all = tasks.processes();
    auto at = all.find(next); // gone meanwhile: from the beginning
    for (std::size_t left = all.size(); left > 0; --left, ++at) {
        if (at == all.end()) at = all.begin();
        const auto& [pid, process] = *at;
        next = pid;
        const Policy& policy = world.policies().policies[process.policy];
        if (!policy.nics_auto || policy.model == policy::Model::full || policy.model == policy::Model::irq)
            continue;
        if (++asked[process.policy] > most_asked) continue;
        if (sockets && std::chrono::steady_clock::now() >= until) return used;
        const auto inodes = inventory::socket_inodes(root, pid, most_descriptors).value_or(Inodes{});
        if (inodes.empty()) continue;
        if (!sockets) {
            sockets.emplace(root, inventory::Wanted::all, most_looked_at);
            sockets->step([] { return false; });
        }
        for (const auto& nic : by_sockets(world.machine(), *sockets, inodes))
            ++used[policy.name][nic];
    }
    return used;
}

} // namespace affinityd::app
