// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "inventory/ip_address.hpp"
#include "inventory/sockets.hpp"
#include "steer/reads.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::steer {

using inventory::Protocol;

/// Where connections or datagrams come in.
struct Address {
    inventory::IpAddress local; ///< 0.0.0.0 is IPv4's, :: is IPv6's
    std::uint16_t port = 0;
    Protocol protocol = Protocol::tcp;
    friend auto operator<=>(const Address&, const Address&) = default;
};

/// A TCP listener, or a socket of UDP that shares its port and has no peer.
struct Listener {
    Address at;
    bool is_dual = false;     ///< IPv6 that takes IPv4, too
    bool has_program = false; ///< its group chooses by a program of its own
    bool has_device = false;  ///< it is bound to an interface
    std::uint64_t inode = 0;  ///< as descriptors of it show it
    bool is_refused = false;  ///< the kernel does not put it where it is wanted
};
using Listeners = std::map<std::uint64_t, Listener>; ///< by cookie

/// How connections to one address are to be handed out, or datagrams.
struct Service {
    Address at;
    std::vector<std::uint64_t> slots{}; ///< the listeners, by cookie, in the order of their slots
    struct Lane {
        unsigned first = 0, count = 0; ///< slots
        double pass_on = 0;            ///< 0..1: so many go to any slot, as the lane has more than its share
        friend bool operator==(const Lane&, const Lane&) = default;
    };
    std::map<unsigned, Lane> lanes{}; ///< by the CPU where packets arrive
    double pass_on = 0;               ///< 0..1: so many are left to the kernel's choice
    bool is_dual = false;             ///< IPv4 of a listener of IPv6: IPv4's own takes it from that one
    friend bool operator==(const Service&, const Service&) = default;
};

/// How many connections were handed out since this began, or datagrams.
struct Handed {
    std::uint64_t to_lane = 0, to_next = 0, to_kernel = 0, full = 0;
};

/// Steers new connections and datagrams of one network namespace, by a program that is attached to it until
/// this ends, or until systemd drops what is kept. Source: lanes.bpf.c.
class Lanes {
  public:
    /// `space`: of the process. `reads`, with takers, must outlive it, as `kept` must.
    static Result<Lanes> open(const host::Root& root, int process, std::uint64_t space, const Reads& reads,
                              Kept& kept);

    /// Marks the listeners that a process has open now in a namespace, and with `datagrams` its sockets of
    /// UDP; returns all of them, also where no program serves the namespace. An Error, too, if it has ended.
    [[nodiscard]] static Result<Listeners> mark(const Reads& reads, int process, std::uint64_t space,
                                                bool datagrams);
    /// False: the namespace has ended; another one may have its number.
    [[nodiscard]] bool is_attached() const;
    /// A former daemon has set what is in force.
    [[nodiscard]] bool is_adopted() const;
    /// Puts all that are marked where set() wants them, and lists them, steer_most_listeners at most.
    /// `processes`: whose descriptors are gone through where the kernel does not list sockets by their
    /// storage.
    [[nodiscard]] Result<Listeners> put_listeners(const std::vector<int>& processes);
    /// Puts this in force instead of what was, at once for each address, and lists the listeners as
    /// put_listeners() does. An Error: there is no room, or the kernel does not list sockets; then nothing is
    /// in force.
    [[nodiscard]] Result<Listeners> set(const std::vector<Service>& services,
                                        const std::vector<int>& processes);
    /// Addresses of others that are more specific than one that is steered: what comes for them is left
    /// alone. `listed`: when they were listed, in ns of the monotonic clock; those that opened later stay
    /// noted. False: there is no room, and none of them is noted.
    [[nodiscard]] bool leave(const std::set<Address>& others, std::uint64_t listed);
    [[nodiscard]] Handed handed(Protocol protocol) const;
    /// Ends steering, also for systemd.
    void end();
    /// Ends what a former daemon has left in force in a namespace.
    static void drop(std::uint64_t space, const Reads& reads, Kept& kept);

  private:
    struct Program;
    Result<Listeners> replace(const std::vector<Service>& services, const std::vector<int>& processes);
    explicit Lanes(std::shared_ptr<Program> program) : program_(std::move(program)) {}
    std::shared_ptr<Program> program_;
};

} // namespace affinityd::steer
