// SPDX-License-Identifier: Apache-2.0
#include "machine/reader.hpp"

#include "host/root.hpp"
#include "irq/reader.hpp"
#include "machine/labels.hpp"
#include "netdev/napi.hpp"
#include "netdev/reader.hpp"
#include "topology/reader.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::machine {

namespace {

/// The same CPUs are online, possible and isolated, so all else is as it was.
bool is_unchanged(const host::Root& root, const topology::Topology& before) {
    const auto cpus = [&](const char* name) {
        return root.sys().cpu_list(std::string("devices/system/cpu/") + name).value_or(CpuSet{});
    };
    return cpus("online") == before.online && cpus("possible") == before.possible &&
           (topology::read_isolated(root) & before.online) == before.isolated;
}

std::optional<std::uint32_t> read_flow_entries(const host::Root& root) {
    const auto entries = root.proc().number("sys/net/core/rps_sock_flow_entries");
    if (!entries || *entries < 0 || *entries > 0xffffffffLL) return std::nullopt;
    return static_cast<std::uint32_t>(*entries);
}

/// Notes the kernel threads at the queues and interrupts whose work they do: threaded NAPI, irq/N-name.
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

/// While no port of a bond has a link, the last one that had is as good as any: no task moves for that.
void keep_active_port(netdev::Nic& nic, const netdev::Nic* before) {
    if (before != nullptr && nic.active_lower == "") nic.active_lower = before->active_lower;
}

/// An interface that has left for a container is a NIC all the same. A device is forgotten once it has gone,
/// or has its interface back.
Result<void> add_moved(const host::Root& root, const std::string& folder, Machine& machine) {
    auto nic = netdev::read_moved(root, folder);
    if (!nic) return std::unexpected(nic.error());
    if (*nic && machine.moved.insert((*nic)->device).second)
        machine.nics.insert(machine.nics.begin(), std::move(**nic)); // ascending by number: it has none here
    return {};
}

} // namespace

MachineReader::MachineReader(const host::Root& root, const Machine* before)
    : root_(&root), before_(before), groups_(root), nics_(root), irqs_(root),
      threads_(root,
               before == nullptr ? std::span<const inventory::KernelThread>() : before->kernel_threads) {}

Result<void> MachineReader::read_topology() {
    if (before_ != nullptr && is_unchanged(*root_, before_->topology)) {
        machine_.topology = before_->topology;
        return {};
    }
    auto topology = topology::read_topology(*root_);
    if (!topology) return std::unexpected(topology.error());
    machine_.topology = std::move(*topology);
    return {};
}

Result<void> MachineReader::take_nics() {
    machine_.nics = nics_.take();
    machine_.flow_entries = read_flow_entries(*root_);
    if (before_ == nullptr) return {};
    std::set<std::string> absent = before_->moved;
    for (const auto& nic : before_->nics)
        if (!nic.device.empty()) absent.insert(nic.device);
    for (auto& nic : machine_.nics) {
        keep_active_port(nic, before_->nic(nic.name));
        absent.erase(nic.device);
    }
    for (const auto& folder : absent)
        if (auto added = add_moved(*root_, folder, machine_); !added) return added;
    return {};
}

void MachineReader::take_irqs() {
    auto labels = read_labels(*root_);
    machine_.irqs = irqs_.take(std::move(labels.table));
    machine_.label_findings = std::move(labels.findings);
}

Result<void> MachineReader::take_threads() {
    auto threads = threads_.take();
    if (!threads) return std::unexpected(threads.error());
    machine_.kernel_threads = std::move(*threads);
    attach_kernel_threads(machine_);
    return {};
}

Result<bool> MachineReader::step(const std::function<bool()>& out_of_time) {
    Result<bool> is_read = true; // what this stage is about
    Result<void> is_taken;
    switch (stage_) {
    case Stage::topology:
        is_taken = read_topology();
        break;
    case Stage::pods: // an update of a world that asks for none keeps none
        machine_.follows_pods = before_ == nullptr || before_->follows_pods;
        if (machine_.follows_pods) is_read = groups_.step(out_of_time);
        if (*is_read) machine_.topology.pods = own_cpus(groups_.take(), machine_.topology.online);
        break;
    case Stage::nics:
        is_read = nics_.step(out_of_time);
        if (is_read && *is_read) is_taken = take_nics();
        break;
    case Stage::irqs:
        is_read = irqs_.step(out_of_time);
        if (is_read && *is_read) take_irqs();
        break;
    case Stage::threads:
        is_read = threads_.step(out_of_time);
        if (*is_read) is_taken = take_threads();
        break;
    case Stage::links:
        link_vectors(machine_);
        break;
    case Stage::done:
        return true;
    }
    if (!is_taken) return std::unexpected(is_taken.error());
    if (!is_read || !*is_read) return is_read;
    stage_ = static_cast<Stage>(static_cast<unsigned>(stage_) + 1);
    return stage_ == Stage::done;
}

Result<irq::InterruptTable> read_irqs(const host::Root& root) {
    auto table = irq::read_interrupts(root);
    if (table) table->labels = read_labels(root).table;
    return table;
}

Result<Machine> read_machine(const host::Root& root) {
    MachineReader reader(root, nullptr);
    while (true) {
        const auto done = reader.step([] { return false; });
        if (!done) return std::unexpected(done.error());
        if (*done) return reader.take();
    }
}

InterfaceReader::InterfaceReader(const host::Root& root, std::string nic, const Machine& before)
    : root_(&root), nic_(std::move(nic)), irqs_(root), thread_scan_(root, before.kernel_threads) {
    const auto* known = before.nic(nic_);
    has_irqs_ = known != nullptr && !known->device.empty();
    has_threads_ = has_irqs_ || (known != nullptr && known->threaded_napi);
}

Result<void> InterfaceReader::read_nic() {
    auto fresh = netdev::read_nic(*root_, nic_);
    if (!fresh) return std::unexpected(fresh.error());
    fresh_ = std::move(*fresh);
    has_irqs_ = has_irqs_ || (fresh_ && !fresh_->device.empty());
    has_threads_ = has_threads_ || has_irqs_ || (fresh_ && fresh_->threaded_napi);
    return {};
}

Result<bool> InterfaceReader::go_on(const std::function<bool()>& out_of_time) {
    switch (stage_) {
    case Stage::nic:
        if (const auto done = read_nic(); !done) return std::unexpected(done.error());
        return true;
    case Stage::irqs:
        return has_irqs_ ? irqs_.step(out_of_time) : true;
    case Stage::threads:
        if (!has_threads_) return true;
        if (!thread_scan_.step(out_of_time)) return false;
        if (auto threads = thread_scan_.take(); !threads)
            return std::unexpected(threads.error());
        else
            threads_ = std::move(*threads);
        return true;
    case Stage::done:
        break;
    }
    return true;
}

Result<bool> InterfaceReader::step(const std::function<bool()>& out_of_time) {
    while (stage_ != Stage::done) {
        const auto done = go_on(out_of_time);
        if (!done || !*done) return done;
        stage_ = static_cast<Stage>(static_cast<unsigned>(stage_) + 1);
        if (stage_ != Stage::done && out_of_time()) return false;
    }
    return true;
}

void InterfaceReader::put_into(Machine& machine) {
    // A renamed interface is known by its former name.
    if (fresh_ && fresh_->ifindex != 0)
        std::erase_if(machine.nics, [&](const netdev::Nic& other) {
            const bool is_former = other.ifindex == fresh_->ifindex && other.name != nic_;
            if (is_former) machine.vectors.erase(other.name);
            return is_former;
        });
    if (fresh_ && machine.moved.erase(fresh_->device) > 0) // it is back
        std::erase_if(machine.nics,
                      [&](const auto& other) { return other.is_moved && other.device == fresh_->device; });
    const auto known = std::ranges::find(machine.nics, nic_, &netdev::Nic::name);
    if (!fresh_ && known != machine.nics.end()) {
        const auto device = known->device;
        machine.nics.erase(known);
        if (!device.empty()) (void)add_moved(*root_, device, machine); // on an error, the next pass reads it
    } else if (fresh_ && known != machine.nics.end()) {
        keep_active_port(*fresh_, &*known);
        *known = std::move(*fresh_);
    } else if (fresh_) {
        machine.nics.push_back(std::move(*fresh_));
        std::ranges::stable_sort(machine.nics, {}, &netdev::Nic::ifindex); // as read_nics() has them
    }
    if (has_irqs_) machine.irqs = irqs_.take(machine.irqs.labels);
    if (has_threads_) machine.kernel_threads = std::move(threads_);
    attach_kernel_threads(machine);
    if (has_irqs_)
        link_vectors(machine);
    else // as it comes and goes with each container, nothing else is looked at
        machine.vectors.erase(nic_);
}

} // namespace affinityd::machine
