// SPDX-License-Identifier: Apache-2.0
#include "machine/reader.hpp"

#include "host/root.hpp"
#include "irq/reader.hpp"
#include "machine/kernel_threads.hpp"
#include "netdev/reader.hpp"
#include "topology/reader.hpp"

namespace affinityd::machine {

Result<Machine> read_machine(const host::Root& root) {
    auto topology = topology::read_topology(root);
    if (!topology) return std::unexpected(topology.error());
    auto nics = netdev::read_nics(root);
    if (!nics) return std::unexpected(nics.error());
    auto irqs = irq::read_interrupts(root);
    if (!irqs) return std::unexpected(irqs.error());
    Machine machine{std::move(*topology), std::move(*nics), std::move(*irqs)};
    if (const auto entries = root.proc().number("sys/net/core/rps_sock_flow_entries");
        entries && *entries >= 0 && *entries <= 0xffffffffLL)
        machine.flow_entries = static_cast<std::uint32_t>(*entries);
    attach_kernel_threads(root, machine);
    link_vectors(machine);
    return machine;
}

} // namespace affinityd::machine
