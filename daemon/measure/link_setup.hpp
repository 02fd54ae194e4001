// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <string>

namespace affinityd::measure {

/// Interfaces of the experiment's own namespaces. All names are of the namespace the caller is in.

/// A veth pair: `name` here, `peer` in the namespace that `peer_space` is open at.
[[nodiscard]] Result<void> make_veth(const std::string& name, const std::string& peer, int peer_space);
/// Moves an interface of this namespace to another; it arrives down and without addresses.
[[nodiscard]] Result<void> move_link(const std::string& name, int space);
/// An IPv4 address with its prefix length, then up.
[[nodiscard]] Result<void> bring_up(const std::string& name, const std::string& address, unsigned prefix);
[[nodiscard]] Result<void> put_up(const std::string& name);
[[nodiscard]] Result<void> take_down(const std::string& name);
/// veth receives by NAPI only with generic receive offload on; drivers/net/veth.c, veth_gro_requested.
[[nodiscard]] Result<bool> has_gro(const std::string& name);
[[nodiscard]] Result<void> set_gro(const std::string& name, bool on);
/// ... and passes what a sender with segmentation offload gives it past that NAPI:
/// veth_skb_is_eligible_for_gro.
[[nodiscard]] Result<bool> has_tso(const std::string& name);
[[nodiscard]] Result<void> set_tso(const std::string& name, bool on);

} // namespace affinityd::measure
