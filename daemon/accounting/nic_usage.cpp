// SPDX-License-Identifier: Apache-2.0
#include "accounting/nic_usage.hpp"

#include "accounting/cpu_time.hpp"
#include "accounting/nic_addresses.hpp"
#include "accounting/socket_walk.hpp"
#include "inventory/sockets.hpp"

#include <algorithm>
#include <optional>

namespace affinityd::accounting {

namespace {

constexpr std::size_t most_descriptors = 1U << 18;
constexpr std::size_t most_sampled_descriptors = 256;
constexpr std::size_t most_sampled_sockets = 4096;
constexpr unsigned most_sampled_of_policy = 16; ///< workers of one program are alike
constexpr std::size_t most_sampled = 256;       ///< processes, over all policies

/// What the sockets of one process say.
struct Evidence {
    std::vector<bool> nics; ///< by number: it has a socket with an address of the NIC
    bool any = false;       ///< `nics` is not empty
    bool wildcard = false;  ///< it listens on all addresses
};

} // namespace

/// A search under way: the sockets are listed, then one process after another is looked at.
struct NicUsage::Search {
    NicAddresses nics;
    std::vector<UsagePolicy> policies;
    std::vector<UsageProcess> processes;
    std::size_t next = 0;         ///< of the processes
    std::size_t most_sockets = 0; ///< to be listed
    bool is_truncated = false;    ///< there were more
    std::unordered_map<std::uint64_t, inventory::LocalSocket> sockets{};
    std::optional<SocketWalk> walk{}; ///< of the process at `next`
    Evidence evidence{};

    [[nodiscard]] bool needs_sockets(const UsageProcess& process) const {
        const auto& policy = policies[process.policy];
        return policy.is_auto || policy.named.size() > 1;
    }
    void take(std::uint64_t inode) {
        const auto found = sockets.find(inode);
        if (found == sockets.end()) return;
        const auto& socket = found->second;
        if (socket.any_address) {
            evidence.wildcard = evidence.wildcard || socket.listens();
            return;
        }
        const auto address = parse_address(socket.local);
        if (!address) return;
        for (const auto nic : nics.find(*address)) {
            evidence.nics[nic] = true;
            evidence.any = true;
        }
    }
    /// NICs by number that the evidence names. Connections say more than a listener: every NIC is taken only
    /// where there are none.
    [[nodiscard]] std::vector<unsigned> used() const {
        std::vector<unsigned> found;
        if (!evidence.any && evidence.wildcard)
            found.assign(nics.reachable().begin(), nics.reachable().end());
        for (unsigned nic = 0; evidence.any && nic < nics.size(); ++nic)
            if (evidence.nics[nic]) found.push_back(nic);
        return found;
    }
    /// Names of the NICs that serve a process of the policy, cut to those that the policy is about.
    [[nodiscard]] std::vector<std::string> names(const UsagePolicy& policy) const {
        std::vector<std::string> names;
        for (const auto nic : used())
            if (policy.is_auto || std::ranges::find(policy.named, nics.name(nic)) != policy.named.end())
                names.push_back(nics.name(nic));
        std::ranges::sort(names);
        return names.empty() && !policy.is_auto ? policy.named : names;
    }
    [[nodiscard]] bool list(const host::Root& root);
    [[nodiscard]] bool look(const host::Root& root, const std::function<bool()>& out_of_time);
    void count(NicUsageResult& result);
};

NicUsage::NicUsage(const host::Root& root) : root_(&root) {}
NicUsage::NicUsage(NicUsage&&) noexcept = default;
NicUsage& NicUsage::operator=(NicUsage&&) noexcept = default;
NicUsage::~NicUsage() = default;

/// All processes whose placement depends on it, and a sample of the others that differs from search to
/// search.
std::vector<UsageProcess> NicUsage::choose(const Request& request) {
    std::vector<UsageProcess> chosen;
    std::vector<unsigned> asked(request.policies.size());
    const std::size_t count = request.processes.size();
    std::size_t sampled = 0;
    std::size_t last = sample_from_;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = (sample_from_ + i) % count;
        const auto& process = request.processes[at];
        if (process.policy >= request.policies.size()) continue;
        if (request.policies[process.policy].is_sampled) {
            if (sampled >= most_sampled || asked[process.policy] >= most_sampled_of_policy) continue;
            ++sampled;
            ++asked[process.policy];
            last = at;
        }
        chosen.push_back(process);
    }
    sample_from_ = last + 1;
    return chosen;
}

void NicUsage::begin(Request request) {
    result_ = {};
    auto chosen = choose(request);
    search_ = std::make_unique<Search>(
        Search{NicAddresses(request.nics), std::move(request.policies), std::move(chosen)});
    auto& search = *search_;
    const auto needs_all = [&](const UsageProcess& process) {
        return search.needs_sockets(process) && !search.policies[process.policy].is_sampled;
    };
    search.most_sockets =
        std::ranges::any_of(search.processes, needs_all) ? inventory::most_sockets
        : std::ranges::any_of(search.processes, [&](const auto& one) { return search.needs_sockets(one); })
            ? most_sampled_sockets
            : 0;
}

bool NicUsage::Search::list(const host::Root& root) {
    if (most_sockets == 0 || !sockets.empty()) return true;
    auto listed = inventory::read_sockets(root, inventory::Wanted::all, most_sockets);
    is_truncated = listed.truncated;
    for (auto& socket : listed.sockets)
        sockets.emplace(socket.inode, std::move(socket));
    return true;
}

/// True: the process at `next` is through.
bool NicUsage::Search::look(const host::Root& root, const std::function<bool()>& out_of_time) {
    const auto& process = processes[next];
    if (!needs_sockets(process)) return true;
    if (!walk) {
        evidence = {std::vector<bool>(nics.size()), false, false};
        if (!read_cpu_time(root, process.id)) return true; // another process may have its number by now
        const bool is_sampled = policies[process.policy].is_sampled;
        walk =
            SocketWalk::open(root, process.id.tid, is_sampled ? most_sampled_descriptors : most_descriptors);
        if (!walk) return true;
    }
    return walk->step([this](std::uint64_t inode) { take(inode); }, out_of_time);
}

void NicUsage::Search::count(NicUsageResult& result) {
    const auto& process = processes[next];
    const auto& policy = policies[process.policy];
    auto found = names(policy);
    if (walk) result.truncated = result.truncated || (walk->truncated() && !policy.is_sampled);
    auto& counts = policy.is_sampled ? result.sampled : result.counts;
    for (const auto& nic : found)
        counts[policy.name][nic] += policy.is_sampled ? 1 : process.units;
    if (!policy.is_sampled) result.processes.emplace(process.id, std::move(found));
    walk.reset();
    evidence = {};
    ++next;
}

bool NicUsage::step(const std::function<bool()>& out_of_time) {
    if (!search_) return true;
    auto& search = *search_;
    if (!search.list(*root_)) return false;
    while (search.next < search.processes.size()) {
        if (!search.look(*root_, out_of_time)) return false;
        search.count(result_);
        if (out_of_time()) return false;
    }
    result_.truncated = result_.truncated || search.is_truncated;
    search_.reset();
    return true;
}

const NicUsageResult& NicUsage::result() const { return result_; }

} // namespace affinityd::accounting
