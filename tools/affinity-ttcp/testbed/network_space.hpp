// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"
#include "host/root.hpp"

#include <functional>
#include <string>
#include <vector>

namespace affinityd::ttcp {

/// A network namespace without a name, which lives as long as this object, or a process or socket in it:
/// everything that was made in it ends with the experiment, even with a killed one. Needs root. For
/// single-threaded programs. NicKeeper takes out of it what was moved in.
class NetworkSpace {
  public:
    static Result<NetworkSpace> make(const host::Root& root);
    /// Runs `work` in this namespace and returns to the one before.
    [[nodiscard]] Result<void> within(const std::function<Result<void>()>& work) const;
    [[nodiscard]] int fd() const { return space_.get(); }
    /// The namespace that this process was in when this object was made.
    [[nodiscard]] int outside() const { return outside_.get(); }
    /// The namespace's sysfs, mounted nowhere, with interfaces that the machine's own sysfs lacks.
    [[nodiscard]] const host::Dir& sys() const { return sys_; }

  private:
    NetworkSpace(host::Fd space, host::Fd outside, host::Dir sys)
        : space_(std::move(space)), outside_(std::move(outside)), sys_(std::move(sys)) {}
    host::Fd space_;
    host::Fd outside_;
    host::Dir sys_;
};

/// Interfaces of the experiment's namespaces. Every name belongs to the namespace that the caller is in.

/// Makes a veth pair: `name` here, `peer` in the namespace that the descriptor `peer_space` refers to.
[[nodiscard]] Result<void> make_veth(const std::string& name, const std::string& peer, int peer_space);
/// Moves an interface of this namespace to another; it arrives down and without addresses.
[[nodiscard]] Result<void> move_link(const std::string& name, int space);
/// Sets an IPv4 address with its prefix length, then brings the interface up.
[[nodiscard]] Result<void> bring_up(const std::string& name, const std::string& address, unsigned prefix);
/// Brings it up or takes it down.
[[nodiscard]] Result<void> set_up(const std::string& name, bool up);

enum class Offload {
    receive,      ///< generic; a veth receives by NAPI only with it: drivers/net/veth.c, veth_gro_requested
    segmentation, ///< packets from a veth sender with it bypass the receiver's NAPI: drivers/net/veth.c,
                  ///< veth_skb_is_eligible_for_gro
};
[[nodiscard]] Result<bool> has_offload(const std::string& name, Offload offload);
[[nodiscard]] Result<void> set_offload(const std::string& name, Offload offload, bool on);

/// Has a veth receive by NAPI.
[[nodiscard]] Result<void> receive_by_napi(const std::string& name);

/// Turns on NAPI threads for an interface of this space that is up, and finds their TIDs. Other namespaces
/// may have interfaces of the same name, so only threads that were not there before count.
[[nodiscard]] Result<std::vector<int>> start_napi_threads(const host::Root& root, const NetworkSpace& space,
                                                          const std::string& name);

} // namespace affinityd::ttcp
