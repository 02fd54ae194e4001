// SPDX-License-Identifier: Apache-2.0
#include "accounting/nic_usage.hpp"

#include "base/text.hpp"
#include "host/in_thread.hpp"
#include "host/root.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/process_files.hpp"
#include "inventory/sockets.hpp"
#include "netdev/lower.hpp"

#include <cmath>
#include <numeric>
#include <set>
#include <utility>

namespace affinityd::accounting {

namespace {

constexpr double enough_to_serve = 1.0 / 10;
constexpr double too_few_to_serve = 1.0 / 30;
constexpr double forgotten = 1.0 / 1000;

} // namespace

void NicShares::add(const NicSockets& seen, std::chrono::seconds now) {
    if (seen.empty()) return;
    const double age = std::chrono::duration<double>(now - counted_) / half_life;
    const double kept = shares_.empty() ? 0 : std::exp2(-std::max(age, 0.0));
    for (auto& share : shares_)
        share.sockets *= kept;
    for (const auto& [nic, sockets] : seen) {
        auto at = std::ranges::lower_bound(shares_, nic, {}, &Share::nic);
        if (at == shares_.end() || at->nic != nic) at = shares_.insert(at, Share{.nic = nic});
        at->sockets += sockets * (1 - kept);
    }
    const double all = std::accumulate(shares_.begin(), shares_.end(), 0.0,
                                       [](double sum, const Share& share) { return sum + share.sockets; });
    for (auto& share : shares_)
        share.serves = share.sockets >= all * (share.serves ? too_few_to_serve : enough_to_serve);
    std::erase_if(shares_, [&](const Share& share) { return share.sockets < all * forgotten; });
    counted_ = now;
}

std::vector<std::string> NicShares::names() const {
    std::vector<std::string> names;
    for (const auto& share : shares_)
        if (share.serves) names.push_back(share.nic);
    return names;
}

NicAddresses::NicAddresses(std::span<const netdev::Nic> nics) {
    const netdev::Stacks stacks(nics);
    auto& book = books_.emplace_back();
    for (const auto& nic : nics) {
        names_.push_back(nic.name);
        all_.insert(nic.name);
        const bool is_alone =
            !nic.device.empty() && std::ranges::count(nics, nic.device, &netdev::Nic::device) == 1;
        keys_.push_back(nic.ifindex == 0 ? nic.name
                        : is_alone       ? nic.device
                                         : nic.device + '#' + std::to_string(nic.ifindex));
        for (const auto* carrier : stacks.under(nic))
            under_[nic.name].push_back(static_cast<unsigned>(carrier - nics.data()));
    }
    for (const auto& nic : nics) {
        const bool is_reachable = nic.up && netdev::is_physical(nic);
        if (netdev::is_foreign_port(nic) || (!is_reachable && nic.addresses.empty())) continue;
        const bool is_detached = nic.is_detached || nic.name == "lo";
        std::vector<unsigned> carriers;
        const auto add = [&](const netdev::Nic& upper) {
            const auto& under = under_[upper.name];
            carriers.insert(carriers.end(), under.begin(), under.end());
        };
        if (!is_detached) add(nic);
        for (const auto& other : nics) // a service's address: what is sent to it comes over another NIC
            if (is_detached && other.has_default_route && !other.is_detached) add(other);
        if (is_reachable) book.reachable.insert(book.reachable.end(), carriers.begin(), carriers.end());
        for (const auto& text : nic.addresses)
            if (const auto address = inventory::IpAddress::parse(text);
                address && !(is_detached && (text.starts_with("127.") || text == "::1"))) {
                auto& known = book.by_address[*address];
                known.insert(known.end(), carriers.begin(), carriers.end());
            }
    }
    inventory::sort_unique(book.reachable);
}

void NicAddresses::add(const netdev::OtherSpaces& others) {
    for (std::size_t space = books_.size(); space < others.spaces.size(); ++space) {
        auto& book = books_.emplace_back();
        for (std::size_t i = 0; i < others.spaces[space].size(); ++i) {
            const auto& link = others.spaces[space][i];
            if (!netdev::has_packets(link)) continue;
            auto way = others.ways[space][i];
            std::vector<unsigned> carriers;
            if (!way.moved.empty() && !under_.contains(way.nics.back()))
                way.lost = "interrupts of " + way.nics.back() + ", which was moved in there, are not known";
            for (const auto& name : way.nics)
                if (const auto under = under_.find(name); under != under_.end())
                    carriers.insert(carriers.end(), under->second.begin(), under->second.end());
            for (const auto& text : link.addresses)
                if (const auto address = inventory::IpAddress::parse(text);
                    address && !text.starts_with("127.") && text != "::1")
                    book.by_address[*address] = carriers;
            if (link.name == "lo") continue;
            for (const unsigned nic : carriers)
                if (std::ranges::find(way.nics, names_[nic]) == way.nics.end())
                    way.hops += " → " + names_[nic];
            book.reachable.insert(book.reachable.end(), carriers.begin(), carriers.end());
            book.ways.push_back(std::move(way));
        }
        inventory::sort_unique(book.reachable);
    }
}

std::span<const unsigned> AddressBook::find(const inventory::IpAddress& address) const {
    const auto found = by_address.find(address);
    return found == by_address.end() ? std::span<const unsigned>() : found->second;
}

namespace {

using inventory::SocketTable;

constexpr std::size_t most_descriptors = 1U << 18;
constexpr std::size_t most_sampled_descriptors = 256;
constexpr std::size_t most_sampled_sockets = 4096;
constexpr unsigned most_sampled_of_policy = 16; ///< workers of one program are alike
constexpr std::size_t most_sampled = 256;       ///< processes, over all policies

/// The NICs that the sockets of one process name.
struct Evidence {
    std::vector<unsigned> sockets; ///< with an address of the NIC, by its number
    bool has_address = false;      ///< some NIC has one
    bool is_wildcard = false;      ///< it listens on all addresses
    bool is_connected = false;     ///< it has more than listeners
    std::size_t space = 0;         ///< the network namespace that it lives in

    void take(const inventory::LocalSocket& socket, const AddressBook& addresses) {
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
    [[nodiscard]] std::vector<unsigned> used(const AddressBook& addresses) const {
        std::vector<unsigned> found;
        if (!has_address && is_wildcard) found = addresses.reachable;
        for (unsigned nic = 0; has_address && nic < sockets.size(); ++nic)
            if (sockets[nic] > 0) found.push_back(nic);
        return found;
    }
};

} // namespace

/// The findings of a thread for a search.
struct Reading {
    std::vector<SocketTable> sockets{}; ///< by network namespace
    /// By network namespace: those that are no evidence, where any other is, as all ways lead to the same
    /// NICs.
    std::vector<std::optional<std::vector<std::uint64_t>>> local{};
    netdev::OtherSpaces others{};
};

/// True if all interfaces with an address have their packets by the same NICs.
bool has_one_way(const netdev::OtherSpaces& others, std::size_t space) {
    std::set<std::vector<std::string>> ends;
    for (std::size_t i = 0; i < others.spaces[space].size(); ++i)
        if (const auto& link = others.spaces[space][i]; netdev::has_packets(link) && link.name != "lo")
            ends.insert(others.ways[space][i].nics);
    return ends.size() == 1;
}

/// A namespace that cannot be looked into is as one without sockets.
Result<Reading> read_all(const host::Root& root, const inventory::SocketQuestion& asked,
                         const std::vector<int>& pids) {
    Reading all;
    auto others = netdev::read_other_spaces(root, pids);
    if (!others) return std::unexpected(others.error());
    all.others = std::move(*others);
    for (std::size_t space = 0; space < all.others.members.size(); ++space) {
        const int member = all.others.members[space];
        all.local.emplace_back();
        if (space > 0 && has_one_way(all.others, space)) {
            all.local.back() = inventory::read_local_inodes(root, member);
            all.sockets.emplace_back();
            continue;
        }
        auto table = inventory::read_sockets_of(root, member, asked);
        if (!table && member == 0) return std::unexpected(table.error());
        all.sockets.push_back(table ? std::move(*table) : SocketTable{});
    }
    return all;
}

/// A search under way: the sockets are listed, then one process after another is looked at.
struct NicUsage::Search {
    NicAddresses nics;
    std::vector<UsagePolicy> policies;
    std::vector<UsageProcess> processes;
    std::size_t next = 0;                             ///< of the processes
    std::optional<host::InThread<Reading>> reading{}; ///< under way; no value: no process needs it
    Reading read{};
    /// Descriptors of the process at `next`: there may be a hundred thousand, some duplicated.
    std::optional<inventory::NumberedEntries> walk{};
    std::size_t left = 0; ///< so many of them are looked at
    Evidence evidence{};

    [[nodiscard]] bool needs_sockets(const UsageProcess& process) const;
    [[nodiscard]] std::vector<int> pids() const; ///< of those that need them
    [[nodiscard]] std::size_t most_sockets() const;
    [[nodiscard]] bool is_meant(const UsagePolicy& policy, const std::string& nic) const {
        return policy.is_auto ? nics.has(nic) : std::ranges::find(policy.named, nic) != policy.named.end();
    }
    [[nodiscard]] std::vector<std::string> seen(const UsagePolicy& policy) const;
    [[nodiscard]] std::vector<std::string> lately(NicShares& shares, const UsageProcess& process,
                                                  std::chrono::seconds now) const;
    [[nodiscard]] bool list(const std::function<bool()>& out_of_time, NicUsageResult& result);
    void take(std::uint64_t inode);
    [[nodiscard]] Result<bool> look(const host::Root& root, const std::function<bool()>& out_of_time);
};

bool NicUsage::Search::needs_sockets(const UsageProcess& process) const {
    const auto& policy = policies[process.policy];
    return policy.is_auto || policy.named.size() > 1 || process.takes_none; // has it connections?
}

std::vector<int> NicUsage::Search::pids() const {
    std::vector<int> list;
    for (const auto& process : processes)
        if (needs_sockets(process)) list.push_back(process.id.tid);
    return list;
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
    for (const auto nic : evidence.used(nics.book(evidence.space)))
        if (is_meant(policy, nics.name(nic))) names.push_back(nics.name(nic));
    std::ranges::sort(names);
    return names;
}

/// By its sockets now and some time ago. Only where none ever named a NIC, a wildcard listener stands for
/// all.
std::vector<std::string> NicUsage::Search::lately(NicShares& shares, const UsageProcess& process,
                                                  std::chrono::seconds now) const {
    const auto& policy = policies[process.policy];
    NicSockets counted;
    for (unsigned nic = 0; nic < evidence.sockets.size(); ++nic)
        if (evidence.sockets[nic] > 0 && is_meant(policy, nics.name(nic)))
            counted[nics.key(nic)] += evidence.sockets[nic];
    shares.add(counted, now);
    auto names = shares.names();
    for (auto& name : names)
        name = nics.name_of(name);
    std::ranges::sort(names);
    std::erase_if(names, [&](const std::string& nic) { return !is_meant(policy, nic); });
    return names.empty() ? seen(policy) : names;
}

/// True: the sockets are listed.
bool NicUsage::Search::list(const std::function<bool()>& out_of_time, NicUsageResult& result) {
    constexpr std::chrono::microseconds patience{100}; // for the list, before there may be other work
    while (reading) {
        if (auto table = reading->take(patience)) {
            reading.reset();
            if (!*table) result.fault = table->error();
            if (*table) read = std::move(**table);
            nics.add(read.others);
        } else if (out_of_time()) {
            return false;
        }
    }
    return true;
}

/// A socket of the process at `next`, which may have been handed one of the host's.
void NicUsage::Search::take(std::uint64_t inode) {
    for (const auto space : {evidence.space, std::size_t{0}})
        if (const auto* socket = space < read.sockets.size() ? read.sockets[space].find(inode) : nullptr)
            return evidence.take(*socket, nics.book(space));
    if (evidence.space < read.local.size() && read.local[evidence.space])
        evidence.is_wildcard |= !std::ranges::binary_search(*read.local[evidence.space], inode);
}

/// True: the process at `next` is through.
Result<bool> NicUsage::Search::look(const host::Root& root, const std::function<bool()>& out_of_time) {
    const auto& process = processes[next];
    if (!needs_sockets(process)) return true;
    if (!walk) {
        evidence = {.sockets = std::vector<unsigned>(nics.size())};
        if (!inventory::lives_on(root, process.id)) return true; // another process may have its number by now
        const auto& others = read.others.of_pid;
        if (const auto its = others.find(process.id.tid); its != others.end()) evidence.space = its->second;
        left = policies[process.policy].is_sampled ? most_sampled_descriptors : most_descriptors;
        auto entries = inventory::NumberedEntries::open(root.proc(), std::to_string(process.id.tid) + "/fd");
        if (!entries && host::means_absent(entries.error().code)) return true;
        if (!entries) return std::unexpected(entries.error());
        walk = std::move(*entries);
    }
    do {
        const auto number = walk->next();
        if (!number) return std::unexpected(number.error());
        if (!*number || left == 0) return true;
        --left;
        if (const auto inode = inventory::socket_inode(walk->dir(), **number)) take(*inode);
    } while (!out_of_time());
    return false;
}

/// Adds what was found out about the process at `next`, and goes on to the one after it.
void NicUsage::count() {
    auto& search = *search_;
    const auto& process = search.processes[search.next];
    const auto& policy = search.policies[process.policy];
    std::vector<std::string> found;
    if (search.needs_sockets(process) && !policy.is_sampled) {
        NicShares shares;
        if (auto node = known_.extract(process.id)) shares = std::move(node.mapped());
        found = search.lately(shares, process, now_);
        if (!shares.names().empty()) noted_.insert_or_assign(process.id, std::move(shares));
    } else {
        found = search.seen(policy);
    }
    // A single named one needs no evidence. If several are named, all may serve it; that does not make
    // these belong together.
    if (!policy.is_auto && policy.named.size() == 1) found = policy.named;
    const bool is_known = !found.empty();
    if (policy.is_sampled && (is_known || !policy.named.empty())) ++result_.sampled[policy.name][found];
    if (!is_known) found = policy.named;
    if (!policy.is_sampled) {
        const auto& book = search.nics.book(search.evidence.space);
        ServedProcess served{std::move(found), is_known, search.evidence.space != 0 && !is_known,
                             !process.takes_none || search.evidence.is_connected};
        for (const auto& way : book.ways) {
            result_.moved.insert(way.moved.begin(), way.moved.end());
            served.ends.insert(served.ends.end(), way.ends.begin(), way.ends.end());
            served.way += (served.way.empty() ? "" : ", ") + way.hops;
            if (served.lost.empty() && book.reachable.empty()) served.lost = way.lost;
        }
        result_.processes.emplace(process.id, std::move(served));
    }
    search.walk.reset();
    search.evidence = {};
    ++search.next;
}

NicUsage::NicUsage(const host::Root& root) : root_(&root) {}
NicUsage::~NicUsage() = default;

/// All processes whose placement depends on it, and the first of the others.
std::vector<UsageProcess> NicUsage::choose(const Request& request) {
    std::vector<UsageProcess> chosen;
    std::vector<unsigned> asked(request.policies.size());
    std::size_t sampled = 0;
    for (const auto& process : request.processes) {
        if (process.policy >= request.policies.size()) continue;
        if (request.policies[process.policy].is_sampled) {
            if (sampled == most_sampled || asked[process.policy] == most_sampled_of_policy) continue;
            ++sampled;
            ++asked[process.policy];
        }
        chosen.push_back(process);
    }
    return chosen;
}

void NicUsage::begin(Request request) {
    result_ = {};
    now_ = request.now;
    noted_.merge(known_); // the findings of an abandoned search stay
    known_ = std::exchange(noted_, {});
    auto chosen = choose(request);
    search_ = std::make_unique<Search>(
        Search{NicAddresses(request.nics), std::move(request.policies), std::move(chosen)});
    if (const auto most = search_->most_sockets(); most > 0)
        search_->reading.emplace([&root = *root_, asked = inventory::SocketQuestion{.most = most},
                                  pids = search_->pids()] { return read_all(root, asked, pids); });
}

bool NicUsage::step(const std::function<bool()>& out_of_time) {
    if (!search_) return true;
    auto& search = *search_;
    if (!search.list(out_of_time, result_)) return false;
    while (search.next < search.processes.size()) {
        const auto is_through = search.look(*root_, out_of_time);
        if (!is_through) result_.fault = is_through.error();
        if (is_through && !*is_through) return false;
        count();
        if (out_of_time()) return false;
    }
    search_.reset();
    known_ = std::exchange(noted_, {}); // processes that were not asked for are forgotten
    return true;
}

const NicUsageResult& NicUsage::result() const { return result_; }

} // namespace affinityd::accounting
