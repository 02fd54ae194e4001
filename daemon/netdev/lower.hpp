// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netdev/nic.hpp"

#include <span>
#include <vector>

namespace affinityd::netdev {

/// The devices at the bottom of an interface's stack (a VLAN on a bond: the bond's ports), in the order of
/// `nics`; the interface itself if it has no lower devices. Each device is visited once, so that loops and
/// diamonds in a hostile recording cost no more than a list. Lower devices that are not among `nics` (in
/// another network namespace) are left out.
[[nodiscard]] std::vector<const Nic*> physical_lower(const Nic& nic, std::span<const Nic> nics);

} // namespace affinityd::netdev
