// SPDX-License-Identifier: Apache-2.0
// Any bytes for the readers of netlink messages.
#include "netdev/link_monitor.hpp"
#include "netdev/napi.hpp"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
    const auto napi = affinityd::netdev::parse_napi(bytes);
    if (napi && napi->thread && *napi->thread <= 0) std::abort();
    const auto queue = affinityd::netdev::parse_queue(bytes);
    const auto channels = affinityd::netdev::parse_channels(bytes);
    if (size == 0 && (napi || queue || channels)) std::abort();
    // A message has at least sixteen bytes.
    if (affinityd::netdev::parse_route_messages(bytes).size() > size / 16) std::abort();
    if (affinityd::netdev::parse_ethtool_messages(bytes, 16).size() > size / 16) std::abort();
    return 0;
}
