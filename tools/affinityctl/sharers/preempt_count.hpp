// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace affinityctl {

/// Bytes from the variable "runqueues" of a CPU to the one that holds its preempt_count, by the running
/// kernel's BTF: for bpf/context.bpf.h. 0: this architecture keeps that elsewhere, or it is not known.
[[nodiscard]] std::int64_t distance_to_preempt_count();

} // namespace affinityctl
