// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "irq/reader.hpp"
#include "machine/machine.hpp"
#include "machine/pods.hpp"
#include "netdev/reader.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::machine {

/// Reads a whole machine in steps: topology, interfaces, interrupts, the kernel threads that do their work,
/// and how all of these belong together.
class MachineReader {
  public:
    /// `before`: what was read last time, null if nothing was; its topology is kept where the same CPUs are
    /// online. Both must outlive the reader.
    MachineReader(const host::Root& root, const Machine* before);

    /// Takes a step, or part of it. True: take() has the machine. An Error: half a machine is no basis for a
    /// plan.
    [[nodiscard]] Result<bool> step(const std::function<bool()>& out_of_time);
    [[nodiscard]] bool is_done() const { return stage_ == Stage::done; }
    [[nodiscard]] Machine take() { return std::move(machine_); }

  private:
    enum class Stage : std::uint8_t { topology, pods, nics, irqs, threads, links, done };
    [[nodiscard]] Result<void> read_topology();
    [[nodiscard]] Result<void> take_nics();
    void take_irqs();
    [[nodiscard]] Result<void> take_threads();

    const host::Root* root_;
    const Machine* before_;
    Stage stage_ = Stage::topology;
    CpuGroupReader groups_;
    netdev::NicReader nics_;
    irq::InterruptReader irqs_;
    inventory::KernelThreadScan threads_;
    Machine machine_;
};

/// Interrupts alone, with the forms of labels that this machine knows.
[[nodiscard]] Result<irq::InterruptTable> read_irqs(const host::Root& root);
/// The whole machine at once.
[[nodiscard]] Result<Machine> read_machine(const host::Root& root);

/// Reads one interface and its interrupts again, in parts; everything else stays as it was read before. A
/// virtual interface has no interrupts, so that a host of containers, where these come and go, does not read
/// all of the machine's for each.
class InterfaceReader {
  public:
    /// `before`: what is known of the machine. `root` must outlive the reader.
    InterfaceReader(const host::Root& root, std::string nic, const Machine& before);

    /// True: put_into() has all.
    [[nodiscard]] Result<bool> step(const std::function<bool()>& out_of_time);
    /// An interface that has gone is taken out, a new one is added. To be called once.
    void put_into(Machine& machine);

  private:
    enum class Stage : std::uint8_t { nic, irqs, threads, done };
    [[nodiscard]] Result<bool> go_on(const std::function<bool()>& out_of_time);
    [[nodiscard]] Result<void> read_nic();

    const host::Root* root_;
    std::string nic_;
    Stage stage_ = Stage::nic;
    bool has_irqs_;    ///< it had or has a device
    bool has_threads_; ///< or threads poll it
    std::optional<netdev::Nic> fresh_;
    irq::InterruptReader irqs_;
    inventory::KernelThreadScan thread_scan_;
    std::vector<inventory::KernelThread> threads_;
};

} // namespace affinityd::machine
