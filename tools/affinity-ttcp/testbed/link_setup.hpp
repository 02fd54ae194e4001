// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <string>

namespace affinityd::ttcp {

/// Interfaces of the experiment's namespaces. Every name belongs to the namespace that the caller is in.

/// Makes a veth pair: `name` here, `peer` in the namespace that the descriptor `peer_space` refers to.
[[nodiscard]] Result<void> make_veth(const std::string& name, const std::string& peer, int peer_space);
/// Moves an interface of this namespace to another; it arrives down and without addresses.
[[nodiscard]] Result<void> move_link(const std::string& name, int space);
/// Sets an IPv4 address with its prefix length, then brings the interface up.
[[nodiscard]] Result<void> bring_up(const std::string& name, const std::string& address, unsigned prefix);
[[nodiscard]] Result<void> put_up(const std::string& name);
[[nodiscard]] Result<void> take_down(const std::string& name);
/// A veth receives by NAPI only with generic receive offload on: drivers/net/veth.c, veth_gro_requested.
[[nodiscard]] Result<bool> has_gro(const std::string& name);
[[nodiscard]] Result<void> set_gro(const std::string& name, bool on);
/// Packets from a veth sender with segmentation offload bypass the receiver's NAPI:
/// drivers/net/veth.c, veth_skb_is_eligible_for_gro.
[[nodiscard]] Result<bool> has_tso(const std::string& name);
[[nodiscard]] Result<void> set_tso(const std::string& name, bool on);

} // namespace affinityd::ttcp
