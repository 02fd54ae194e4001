// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace affinityctl {

/// Gives up, for good, all capabilities(7) but those that watching needs once it has begun: reading BPF maps,
/// looking at processes and their sockets, and writing the picture where the user says. Programs that are
/// started get no more than these either. What a kernel does not know is passed over.
void keep_few_capabilities();

} // namespace affinityctl
