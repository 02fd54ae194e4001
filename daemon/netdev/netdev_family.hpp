// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace affinityd::netdev::family {

/// Numbers of the generic netlink family "netdev", which the kernel headers of Debian 12 do not have yet.
/// Source: include/uapi/linux/netdev.h of Linux 6.8, which is ABI.
inline constexpr const char* name = "netdev";
inline constexpr std::uint8_t version = 1;

inline constexpr std::uint8_t cmd_queue_get = 10;
inline constexpr std::uint8_t cmd_napi_get = 11;

inline constexpr int napi_ifindex = 1;
inline constexpr int napi_id = 2;
inline constexpr int napi_irq = 3;
inline constexpr int napi_pid = 4;

inline constexpr int queue_id = 1;
inline constexpr int queue_ifindex = 2;
inline constexpr int queue_type = 3;
inline constexpr int queue_napi_id = 4;
inline constexpr unsigned queue_type_tx = 1;

} // namespace affinityd::netdev::family
