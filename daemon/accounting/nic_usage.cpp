// SPDX-License-Identifier: Apache-2.0
#include "accounting/nic_usage.hpp"

#include "accounting/cpu_time.hpp"
#include "accounting/nic_addresses.hpp"
#include "accounting/socket_walk.hpp"
#include "inventory/process_sockets.hpp"
#include "inventory/socket_table.hpp"

#include <algorithm>

namespace affinityd::accounting {

namespace {

using inventory::SocketTable;

constexpr std::size_t most_descriptors = 1U << 18;
constexpr std::size_t most_sampled_descriptors = 256;
constexpr std::size_t most_sampled_sockets = 4096;
constexpr unsigned most_sampled_of_policy = 16; ///< workers of one program are alike
constexpr std::size_t most_sampled = 256;       ///< processes, over all policies
constexpr std::chrono::seconds fresh{5};        ///< an answer that is only shown

/// What the sockets of one process say.
struct Evidence {
    std::vector<unsigned> sockets; ///< with an address of the NIC, by its number
    bool has_address = false;      ///< some NIC has one
    bool is_wildcard = false;      ///< it listens on all addresses
    bool is_elsewhere = false;     ///< it is in another network namespace
    bool is_connected = false;     ///< it has more than listeners

    void take(const inventory::LocalSocket& socket, const NicAddresses& addresses) {
        if (socket.local.is_any()) {
            is_wildcard = is_wildcard || socket.listens();
            return;
        }
        for (const auto nic : addresses.find(socket.local)) {
            ++sockets[nic];
            has_address = true;
            is_connected = is_connected || !socket.listens();
        }
    }
    /// NICs that the sockets name. Connections say more than a listener: every NIC is taken only where there
    /// are none.
    [[nodiscard]] std::vector<unsigned> used(const NicAddresses& addresses) const {
        std::vector<unsigned> found;
        if (!has_address && is_wildcard)
            found.assign(addresses.reachable().begin(), addresses.reachable().end());
        for (unsigned nic = 0; has_address && nic < sockets.size(); ++nic)
            if (sockets[nic] > 0) found.push_back(nic);
        return found;
    }
};

} // namespace

/// A search under way: the sockets are listed, then one process after another is looked at.
struct NicUsage::Search {
    NicAddresses nics;
    std::vector<UsagePolicy> policies;
    std::vector<UsageProcess> processes;
    std::size_t next = 0;                 ///< of the processes
    std::optional<SocketTable> sockets{}; ///< no value: no process needs it
    bool is_listed = false;
    std::optional<SocketWalk> walk{}; ///< of the process at `next`
    Evidence evidence{};

    [[nodiscard]] bool needs_sockets(const UsageProcess& process) const;
    [[nodiscard]] std::size_t most_sockets() const;
    [[nodiscard]] bool is_meant(const UsagePolicy& policy, const std::string& nic) const {
        return policy.is_auto ? nics.has(nic) : std::ranges::find(policy.named, nic) != policy.named.end();
    }
    [[nodiscard]] std::vector<std::string> seen(const UsagePolicy& policy) const;
    [[nodiscard]] std::vector<std::string> lately(NicMemory& memory, const UsageProcess& process) const;
    [[nodiscard]] bool list(const std::function<bool()>& out_of_time, NicUsageResult& result);
    [[nodiscard]] Result<bool> look(const host::Root& root, const std::function<bool()>& out_of_time);
    void count(NicUsageResult& result, NicMemory& memory);
};

bool NicUsage::Search::needs_sockets(const UsageProcess& process) const {
    const auto& policy = policies[process.policy];
    return policy.is_auto || policy.named.size() > 1 || process.takes_none; // has it connections?
}

/// How many sockets must be listed: none, a sample, or all.
std::size_t NicUsage::Search::most_sockets() const {
    std::size_t most = 0;
    for (const auto& process : processes) {
        if (!needs_sockets(process)) continue;
        if (!policies[process.policy].is_sampled) return SocketTable::most_sockets;
        most = most_sampled_sockets;
    }
    return most;
}

/// Names of the NICs that its sockets say serve a process of the policy, cut to those that the policy is
/// about.
std::vector<std::string> NicUsage::Search::seen(const UsagePolicy& policy) const {
    std::vector<std::string> names;
    for (const auto nic : evidence.used(nics))
        if (is_meant(policy, nics.name(nic))) names.push_back(nics.name(nic));
    std::ranges::sort(names);
    return names;
}

/// By its sockets now and some time ago. Only where none ever named a NIC, a wildcard listener stands for
/// all.
std::vector<std::string> NicUsage::Search::lately(NicMemory& memory, const UsageProcess& process) const {
    const auto& policy = policies[process.policy];
    NicSockets counted;
    for (unsigned nic = 0; nic < evidence.sockets.size(); ++nic)
        if (evidence.sockets[nic] > 0 && is_meant(policy, nics.name(nic)))
            counted[nics.key(nic)] += evidence.sockets[nic];
    auto names = memory.note(process.id, counted);
    for (auto& name : names)
        name = nics.name_of(name);
    std::ranges::sort(names);
    std::erase_if(names, [&](const std::string& nic) { return !is_meant(policy, nic); });
    return names.empty() ? seen(policy) : names;
}

/// True: the sockets are listed.
bool NicUsage::Search::list(const std::function<bool()>& out_of_time, NicUsageResult& result) {
    if (!sockets || is_listed) return true;
    if (!sockets->step(out_of_time)) return false;
    is_listed = true;
    result.fault = sockets->fault();
    result.is_truncated = sockets->is_truncated() && most_sockets() > most_sampled_sockets;
    return true;
}

/// True: the process at `next` is through.
Result<bool> NicUsage::Search::look(const host::Root& root, const std::function<bool()>& out_of_time) {
    const auto& process = processes[next];
    if (!needs_sockets(process)) return true;
    if (!walk) {
        evidence = {.sockets = std::vector<unsigned>(nics.size())};
        if (!read_cpu_time(root, process.id)) return true; // another process may have its number by now
        // What the policy names serves it even there: that is the admin's word.
        if (policies[process.policy].is_auto && !inventory::shares_network_namespace(root, process.id.tid)) {
            evidence.is_elsewhere = true;
            return true;
        }
        const bool is_sampled = policies[process.policy].is_sampled;
        auto opened =
            SocketWalk::open(root, process.id.tid, is_sampled ? most_sampled_descriptors : most_descriptors);
        if (!opened) return std::unexpected(opened.error());
        if (!*opened) return true;
        walk = std::move(*opened);
    }
    const auto take = [this](std::uint64_t inode) {
        if (const auto* socket = sockets->find(inode)) evidence.take(*socket, nics);
    };
    return walk->step(take, out_of_time);
}

/// Adds what was found out about the process at `next`, and goes on to the one after it.
void NicUsage::Search::count(NicUsageResult& result, NicMemory& memory) {
    const auto& process = processes[next];
    const auto& policy = policies[process.policy];
    const bool is_remembered = needs_sockets(process) && !policy.is_sampled;
    auto found = is_remembered ? lately(memory, process) : seen(policy);
    // The one that is named needs no evidence. Of several that are, all may serve it; that does not make
    // these belong together.
    if (!policy.is_auto && policy.named.size() == 1) found = policy.named;
    if (walk && walk->is_truncated() && !policy.is_sampled) result.is_truncated = true;
    auto& counts = policy.is_sampled ? result.sampled : result.counts;
    const bool is_served = !process.takes_none || evidence.is_connected;
    if (is_served && (!found.empty() || !policy.named.empty()))
        counts[policy.name][found] += policy.is_sampled ? 1 : process.units;
    if (found.empty()) found = policy.named;
    if (!policy.is_sampled) result.processes.emplace(process.id, std::move(found));
    if (!policy.is_sampled && evidence.is_elsewhere) result.elsewhere.insert(process.id);
    walk.reset();
    evidence = {};
    ++next;
}

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

bool NicUsage::stands(const Request& request) const {
    return !search_ && !result_.fault && asked_at_ && request.now - *asked_at_ < fresh &&
           request.policies == asked_ && std::ranges::all_of(asked_, &UsagePolicy::is_sampled);
}

void NicUsage::begin(Request request) {
    if (stands(request)) return;
    asked_ = request.policies;
    asked_at_ = request.now;
    result_ = {};
    memory_.begin(request.now);
    auto chosen = choose(request);
    search_ = std::make_unique<Search>(
        Search{NicAddresses(request.nics), std::move(request.policies), std::move(chosen)});
    if (const auto most = search_->most_sockets(); most > 0)
        search_->sockets.emplace(*root_, inventory::Wanted::all, most);
}

bool NicUsage::step(const std::function<bool()>& out_of_time) {
    if (!search_) return true;
    auto& search = *search_;
    if (!search.list(out_of_time, result_)) return false;
    while (search.next < search.processes.size()) {
        const auto is_through = search.look(*root_, out_of_time);
        if (!is_through) result_.fault = is_through.error();
        if (is_through && !*is_through) return false;
        search.count(result_, memory_);
        if (out_of_time()) return false;
    }
    search_.reset();
    memory_.end();
    return true;
}

const NicUsageResult& NicUsage::result() const { return result_; }

} // namespace affinityd::accounting
