// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/proc_source.hpp"

#include <cstdint>
#include <vector>

#include <linux/filter.h>

namespace affinityd::host {

/// Socket filter (classic BPF) that lets only the wanted process events through; it sees a datagram from its
/// netlink header on. Documentation/networking/filter.rst.
[[nodiscard]] std::vector<sock_filter> proc_event_filter(const ProcSource::Wanted& wanted);

/// The same for kernels with an event mask, which cannot tell threads from processes: PROC_EVENT_ bits.
[[nodiscard]] std::uint32_t proc_event_mask(const ProcSource::Wanted& wanted);

} // namespace affinityd::host
