// SPDX-License-Identifier: Apache-2.0
#include "machine/kernel_threads.hpp"

#include "irq/threads.hpp"
#include "netdev/napi.hpp"

namespace affinityd::machine {

void attach_kernel_threads(Machine& machine) {
    std::vector<irq::NamedThread> handlers;
    std::vector<netdev::NamedThread> pollers;
    for (const auto& thread : machine.kernel_threads) {
        if (thread.comm.starts_with("irq/"))
            handlers.push_back({thread.id.tid, thread.comm});
        else
            pollers.push_back({thread.id.tid, thread.comm});
    }
    irq::attach_threads(machine.irqs, handlers);
    netdev::attach_napi_threads(machine.nics, pollers);
}

} // namespace affinityd::machine
