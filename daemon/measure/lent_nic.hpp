// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "measure/network_space.hpp"
#include "netdev/nic.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::measure {

/// An interface of this machine in a namespace of the experiment's, and what is put back when this object
/// goes: the CPUs of its interrupts, its threaded NAPI and offload switches, its namespace, whether it was
/// up. If the program is killed the kernel brings a device back by itself, but down, and its interrupts stay
/// where they were put.
class LentNic {
  public:
    /// Refuses one that is in use (it has addresses, or something is stacked upon it) or carries a name the
    /// space has already. Both objects must outlive this one.
    static Result<LentNic> take(const host::Root& root, const netdev::Nic& nic, const NetworkSpace& space);
    LentNic(LentNic&& other) noexcept
        : root_(std::exchange(other.root_, nullptr)), space_(other.space_), state_(std::move(other.state_)) {}
    LentNic& operator=(LentNic&&) = delete;
    ~LentNic();

    /// Up with this address. One without a device behind it (veth) gets NAPI threads, which do there what
    /// interrupts do.
    [[nodiscard]] Result<void> start(const std::string& address);
    /// Up and with a carrier.
    [[nodiscard]] bool has_link() const;
    /// Of its NAPI threads; empty where interrupts do the work. After start().
    [[nodiscard]] const std::vector<int>& threads() const { return state_.threads; }
    /// Its data interrupts, whose CPUs from now on are put back in the end. Those that may not be moved are
    /// left out.
    [[nodiscard]] std::vector<unsigned> take_interrupts();

  private:
    struct State {
        netdev::Nic nic;
        bool was_up = false;
        std::vector<int> threads;
        std::optional<bool> gro, tso; ///< as they were; nothing: not touched
        std::optional<std::string> threaded;
        std::vector<std::pair<unsigned, std::string>> interrupts; ///< and their lists of CPUs
    };
    LentNic(const host::Root& root, const NetworkSpace& space, State state)
        : root_(&root), space_(&space), state_(std::move(state)) {}
    [[nodiscard]] Result<void> use_threads();

    const host::Root* root_; ///< nullptr: moved away
    const NetworkSpace* space_;
    State state_;
};

} // namespace affinityd::measure
