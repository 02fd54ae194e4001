// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"
#include "netdev/nic.hpp"

#include <string>
#include <utility>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::ttcp {

/// An interface as it was before it was borrowed, as far as the kernel does not see to it.
struct KeptNic {
    std::string name;
    bool was_up = false;
    std::vector<std::pair<unsigned, std::string>> interrupts; ///< with their lists of CPUs
};

/// The data interrupts of an interface that can be moved, with their present CPUs.
[[nodiscard]] std::vector<std::pair<unsigned, std::string>> movable_interrupts(const host::Root& root,
                                                                               const netdev::Nic& nic);

/// Writes what differs. An interrupt that has gone, or an interface that cannot be brought up, needs no
/// restoring.
void put_back(const host::Root& root, const KeptNic& nic);

/// A process of its own that puts interfaces back if the one that borrowed them is killed: the kernel returns
/// them then, but down, and with their interrupts where they were put. It belongs to another session, so that
/// what ends a whole job does not end it. With this object it ends without doing anything.
class NicKeeper {
  public:
    static Result<NicKeeper> start(const host::Root& root, const std::vector<netdev::Nic>& nics);
    NicKeeper(NicKeeper&&) noexcept = default;
    NicKeeper& operator=(NicKeeper&&) = delete;
    ~NicKeeper();

  private:
    explicit NicKeeper(host::Fd line) : line_(std::move(line)) {}
    host::Fd line_; ///< a pipe: a byte says that all is put back, its end without one that nothing is
};

} // namespace affinityd::ttcp
