// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/testbed/network_space.hpp"
#include "affinity-ttcp/testbed/nic_keeper.hpp"
#include "base/error.hpp"
#include "netdev/nic.hpp"

#include <string>
#include <utility>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::ttcp {

/// An interface of this machine in a namespace of the experiment. The end of this object restores the CPUs of
/// its interrupts, its threaded NAPI and offload switches, its namespace, and whether it was up. If the
/// program is killed, NicKeeper sees to it.
class BorrowedNic {
  public:
    /// Refuses an interface that is in use (it has addresses, or another device is stacked on it) or whose
    /// name the space already has. Both objects must outlive this one.
    static Result<BorrowedNic> take(const host::Root& root, const netdev::Nic& nic,
                                    const NetworkSpace& space);
    BorrowedNic(BorrowedNic&& other) noexcept
        : root_(std::exchange(other.root_, nullptr)), space_(other.space_), state_(std::move(other.state_)) {}
    BorrowedNic& operator=(BorrowedNic&&) = delete;
    ~BorrowedNic();

    /// Brings it up with this address. One without a device behind it (veth) gets NAPI threads, which do what
    /// interrupts do elsewhere.
    [[nodiscard]] Result<void> start(const std::string& address);
    /// Up and with a carrier.
    [[nodiscard]] bool has_link() const;
    /// TIDs of its NAPI threads; empty where interrupts do the work. After start().
    [[nodiscard]] const std::vector<int>& threads() const { return state_.threads; }
    /// Its data interrupts, except those that cannot be moved. Their present CPUs are restored at the end.
    [[nodiscard]] std::vector<unsigned> take_interrupts();

  private:
    struct State {
        netdev::Nic nic;
        bool was_up = false;
        std::vector<int> threads;
        NapiSwitches switches;                                    ///< as they were, where they were touched
        std::vector<std::pair<unsigned, std::string>> interrupts; ///< with their lists of CPUs
    };
    BorrowedNic(const host::Root& root, const NetworkSpace& space, State state)
        : root_(&root), space_(&space), state_(std::move(state)) {}
    [[nodiscard]] Result<void> use_threads();

    const host::Root* root_; ///< nullptr: moved away
    const NetworkSpace* space_;
    State state_;
};

} // namespace affinityd::ttcp
