// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/testbed/network_space.hpp"
#include "base/error.hpp"
#include "host/fd.hpp"
#include "netdev/nic.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::ttcp {

/// Switches that decide whether an interface without a device behind it (veth) receives by NAPI, and in
/// threads; no value: it is not known, or not to be touched.
struct NapiSwitches {
    std::optional<bool> gro, tso;
    std::optional<std::string> threaded;
};

/// An interface as it was before it was borrowed, as far as the kernel does not see to it.
struct KeptNic {
    std::string name;
    bool was_up = false;
    std::vector<std::pair<unsigned, std::string>> interrupts; ///< with their lists of CPUs
    NapiSwitches switches{};
};

/// The data interrupts of an interface that can be moved, with their present CPUs.
[[nodiscard]] std::vector<std::pair<unsigned, std::string>> movable_interrupts(const host::Root& root,
                                                                               const netdev::Nic& nic);

/// Puts these switches back, takes the interface down, which drops the address of the experiment, and moves
/// it from a space to where it was before. An Error: it is not there.
[[nodiscard]] Result<void> bring_back(const NetworkSpace& space, const std::string& name,
                                      const NapiSwitches& switches);

/// Writes what differs. An interrupt that has gone, or an interface that cannot be brought up, needs no
/// restoring.
void put_back(const host::Root& root, const KeptNic& nic);

/// A process of its own that puts interfaces back once this object, or the process that made it, has ended:
/// NAPI and offload switches, the namespace, the CPUs of interrupts, and whether each was up. The keeper
/// holds the spaces until all are out of them: with its space the kernel removes a virtual interface
/// (net/core/dev.c, default_device_exit_batch), and returns a real one, but down, with its interrupts where
/// they were put, and to the first namespace. In a session of its own, it outlives a signal that ends a whole
/// job.
class NicKeeper {
  public:
    /// Before any of the interfaces is moved to one of the spaces.
    static Result<NicKeeper> start(const host::Root& root, const std::vector<netdev::Nic>& nics,
                                   const std::vector<NetworkSpace>& spaces);
    NicKeeper(NicKeeper&&) noexcept = default;
    NicKeeper& operator=(NicKeeper&&) = delete;
    /// Waits until all are back, at most half a minute.
    ~NicKeeper();

  private:
    NicKeeper(host::Fd line, host::Fd done) : line_(std::move(line)), done_(std::move(done)) {}
    host::Fd line_; ///< a pipe whose end tells the keeper to begin
    host::Fd done_; ///< a pipe that ends with the keeper
};

/// Why an interface must stay where it is: it has addresses, or another device is stacked on it; "" if it may
/// move.
[[nodiscard]] std::string why_in_use(const host::Root& root, const netdev::Nic& nic);

/// Moves an interface of this machine to a namespace of the experiment and brings it up with this address.
/// An interface without a device (veth) gets NAPI threads, which do what interrupts do elsewhere: their TIDs.
[[nodiscard]] Result<std::vector<int>> borrow(const host::Root& root, const netdev::Nic& nic,
                                              const NetworkSpace& space, const std::string& address);

} // namespace affinityd::ttcp
