// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "base/task_id.hpp"
#include "inventory/ip_address.hpp"
#include "netdev/nic.hpp"
#include "netdev/ways.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::accounting {

/// NIC, by what stays when it is renamed -> sockets with an address of it.
using NicSockets = std::map<std::string, unsigned>;

/// How much each NIC serves one process: its sockets with an address of the NIC, averaged over the last
/// minutes. Connections come and go; a process that followed each of them would never rest.
class NicShares {
  public:
    /// An old count weighs half after this time.
    static constexpr std::chrono::seconds half_life{120};

    /// The findings of a search. Nothing at all says nothing: a server without clients is still served as it
    /// was. `now`: of any clock that only goes forward.
    void add(const NicSockets& seen, std::chrono::seconds now);
    /// The NICs that serve it, ascending: those that have had a tenth of its sockets, as long as they have a
    /// thirtieth.
    [[nodiscard]] std::vector<std::string> names() const;

  private:
    struct Share {
        std::string nic;
        double sockets = 0; ///< on average
        bool serves = false;
    };
    std::vector<Share> shares_; ///< ascending by name
    std::chrono::seconds counted_{};
};

/// NICs, as numbers, by the addresses of a network namespace.
struct AddressBook {
    std::unordered_map<inventory::IpAddress, std::vector<unsigned>> by_address;
    /// NICs that a wildcard listener may be reached through: those that are up and belong to a device.
    /// Loopback and other virtual NICs serve only where a policy names them, or by an address.
    std::vector<unsigned> reachable;
    std::vector<netdev::Way> ways{}; ///< of another namespace

    /// Never loopback, nor a port of a guest or container; empty: none. A NIC may be there twice.
    [[nodiscard]] std::span<const unsigned> find(const inventory::IpAddress& address) const;
};

/// Which NIC carries what is sent to an address: the NIC that has it, or those under that (a bond's ports).
/// To an address of a dummy, a tunnel or loopback it is sent over those with a default route. To one of
/// another network namespace it is sent by the way of the interface there that has it. NICs are numbers from
/// 0 in the order they were given.
class NicAddresses {
  public:
    explicit NicAddresses(std::span<const netdev::Nic> nics);
    /// Adds what the namespaces after the first have.
    void add(const netdev::OtherSpaces& others);

    [[nodiscard]] std::size_t size() const { return names_.size(); }
    [[nodiscard]] const std::string& name(std::size_t nic) const { return names_[nic]; }
    /// Stays the same when it gets another name: its device, or its number.
    [[nodiscard]] const std::string& key(std::size_t nic) const { return keys_[nic]; }
    /// "": none has the key now.
    [[nodiscard]] std::string name_of(const std::string& key) const {
        const auto found = std::ranges::find(keys_, key);
        return found == keys_.end() ? std::string() : names_[static_cast<std::size_t>(found - keys_.begin())];
    }
    [[nodiscard]] bool has(const std::string& name) const { return all_.contains(name); }
    /// By the number of a namespace; 0: the daemon's own.
    [[nodiscard]] const AddressBook& book(std::size_t space) const { return books_[space]; }

  private:
    std::vector<std::string> names_, keys_;
    std::unordered_set<std::string> all_;
    std::unordered_map<std::string, std::vector<unsigned>> under_; ///< each NIC, those under it
    std::vector<AddressBook> books_;
};

/// Policy -> NICs -> number of processes that these serve, each of them.
using NicCounts = std::map<std::string, std::map<std::vector<std::string>, unsigned>>;

/// A policy whose NICs are asked for.
struct UsagePolicy {
    std::string name;
    bool is_auto = false; ///< `nics: auto`: every NIC may serve it
    /// Else the NICs it names. A process uses those of them that its sockets use, or all if they use none.
    std::vector<std::string> named{};
    /// The answer is for people alone, not for a placement: a few sockets of a few processes are looked at.
    bool is_sampled = false;
};

/// A process whose NICs are asked for.
struct UsageProcess {
    TaskId id;
    std::size_t policy = 0; ///< index into the policies asked for
    /// The process takes none of the connections of its listeners: it is served only if it has some.
    bool takes_none = false;
};

/// The findings about one process.
struct ServedProcess {
    std::vector<std::string> nics; ///< ascending; those that the policy names where its sockets name none
    bool is_known = false;         ///< its sockets say so, or the policy names one only
    bool is_elsewhere = false;     ///< in another network namespace, and no NIC is known that leads there
    bool is_served = true;         ///< false: it takes none of the connections of its listeners, and has none
    /// In another network namespace: the ways of packets there, and why they cannot be followed ("": they
    /// can).
    std::string way{}, lost{};
    std::vector<std::string> ends{}; ///< of pairs in the daemon's namespace that these go through
};

/// The result of a search.
struct NicUsageResult {
    NicCounts sampled;                                   ///< of policies that are sampled
    std::unordered_map<TaskId, ServedProcess> processes; ///< of the others
    std::set<std::string> moved; ///< devices, in sysfs, of NICs that are in containers of these, and are up
    /// Sockets or descriptors could not be listed: what is here is not all, and nothing should be changed for
    /// it.
    std::optional<Error> fault;
};

/// Finds out which NIC serves which process, by the local addresses of its sockets, in whichever network
/// namespace it lives. A wildcard listener is
/// reached through every NIC that is up and belongs to a device; it counts only where the process has no
/// connection, which says more.
///
/// The work is proportional to sockets + descriptors, is bounded, and is done in slices: begin(), then step()
/// until it returns true, then result(). The findings are averaged over some minutes (NicShares).
class NicUsage {
  public:
    struct Request {
        std::span<const netdev::Nic> nics; ///< read by begin() only
        std::vector<UsagePolicy> policies;
        std::vector<UsageProcess> processes;
        std::chrono::seconds now{}; ///< of any clock that only goes forward
    };
    /// `root` must outlive it.
    explicit NicUsage(const host::Root& root);
    ~NicUsage();

    /// Begins anew. A search under way is abandoned. Sockets are listed only if some process needs them.
    void begin(Request request);
    /// Works until `out_of_time` says so. True: the result is there.
    [[nodiscard]] bool step(const std::function<bool()>& out_of_time);
    /// Valid after step() has returned true, until begin().
    [[nodiscard]] const NicUsageResult& result() const;

  private:
    struct Search;
    [[nodiscard]] static std::vector<UsageProcess> choose(const Request& request);
    void count();
    const host::Root* root_;
    std::unique_ptr<Search> search_;
    NicUsageResult result_;
    /// How NICs served each process lately: before this search, and as far as it has come.
    std::unordered_map<TaskId, NicShares> known_, noted_;
    std::chrono::seconds now_{};
};

} // namespace affinityd::accounting
