// SPDX-License-Identifier: Apache-2.0
#include "machine/kernel_threads.hpp"

#include "base/text.hpp"
#include "host/root.hpp"
#include "inventory/head.hpp"
#include "inventory/scan.hpp"
#include "irq/threads.hpp"
#include "netdev/napi.hpp"

namespace affinityd::machine {

namespace {

std::vector<int> candidates(const host::Root& root) {
    std::vector<int> pids;
    if (const auto listed = root.proc().text("2/task/2/children"))
        for (const auto word : split_words(*listed))
            if (const auto pid = parse_number<int>(word)) pids.push_back(*pid);
    if (!pids.empty()) return pids;
    return inventory::list_pids(root).value_or(std::vector<int>{});
}

} // namespace

void attach_kernel_threads(const host::Root& root, Machine& machine) {
    std::vector<inventory::Head> heads; // owns the names
    for (const int pid : candidates(root)) {
        auto head = inventory::read_head(root, pid, nullptr);
        if (!head || !head->is_kernel()) continue; // any process may call itself napi/eth0-1
        if (head->comm.starts_with("irq/") || head->comm.starts_with("napi/"))
            heads.push_back(std::move(*head));
    }
    std::vector<irq::NamedThread> handlers;
    std::vector<netdev::NamedThread> pollers;
    for (const auto& head : heads) {
        if (head.comm.starts_with("irq/"))
            handlers.push_back({head.id.tid, head.comm});
        else
            pollers.push_back({head.id.tid, head.comm});
    }
    irq::attach_threads(machine.irqs, handlers);
    netdev::attach_napi_threads(machine.nics, pollers);
}

} // namespace affinityd::machine
