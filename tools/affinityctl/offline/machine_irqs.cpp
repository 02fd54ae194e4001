// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/machine_irqs.hpp"

#include "host/root.hpp"
#include "machine/reader.hpp"
#include "netdev/reader.hpp"

#include <thread>

namespace affinityctl {

using affinityd::Result;

Result<MachineIrqs> read_machine_irqs(const std::string& folder,
                                      std::optional<std::chrono::milliseconds> interval) {
    const auto root = affinityd::host::Root::open(folder);
    if (!root) return std::unexpected(root.error());
    if (interval && !root->is_live()) return affinityd::fail("a recorded machine has no rates", folder);
    auto nics = affinityd::netdev::read_nics(*root);
    if (!nics) return std::unexpected(nics.error());
    MachineIrqs machine;
    machine.nics = std::move(*nics);
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    if (interval) {
        auto before = affinityd::machine::read_irqs(*root);
        if (!before) return std::unexpected(before.error());
        machine.before = std::move(*before);
        std::this_thread::sleep_for(*interval);
    }
    auto table = affinityd::machine::read_irqs(*root);
    if (!table) return std::unexpected(table.error());
    machine.table = std::move(*table);
    machine.seconds = std::chrono::duration<double>(clock::now() - start).count();
    return machine;
}

} // namespace affinityctl
