// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"
#include "inventory/lookup.hpp"
#include "support/tree.hpp"

#include <sstream>

#include <fmt/format.h>

namespace affinityd::app::test {

using affinityd::test::Tree;

/// A machine out of files: four CPUs (siblings 0-1 and 2-3, one cache), a NIC eth0 of two queues with
/// interrupts 30 and 31, and the processes a test puts there.
class Machine {
  public:
    Machine() {
        const std::string cpus = "sys/devices/system/cpu/";
        for (const char* name : {"online", "present", "possible"})
            tree_.file(cpus + name, "0-3\n");
        for (unsigned cpu = 0; cpu < 4; ++cpu) {
            const std::string own = cpus + "cpu" + std::to_string(cpu) + "/";
            tree_.file(own + "topology/physical_package_id", "0\n");
            tree_.file(own + "topology/core_id", std::to_string(cpu / 2) + "\n");
            tree_.file(own + "topology/thread_siblings_list", cpu < 2 ? "0-1\n" : "2-3\n");
            tree_.file(own + "topology/core_siblings_list", "0-3\n");
            tree_.file(own + "cache/index3/level", "3\n");
            tree_.file(own + "cache/index3/type", "Unified\n");
            tree_.file(own + "cache/index3/shared_cpu_list", "0-3\n");
        }
        tree_.file("sys/devices/system/node/node0/cpulist", "0-3\n");
        add_nic("eth0", "0000:00:03.0", 30);
        tree_.folder("policies");
    }

    /// The main thread, and so the process. `start` tells it from a later one of the same number.
    void process(int pid, const std::string& comm, const std::string& allowed = "0-3", int parent = 1,
                 unsigned flags = 0, int start = 100) const {
        const std::string folder = "proc/" + std::to_string(pid) + "/";
        write_task(folder, pid, pid, comm, allowed, parent, flags, start);
        tree_.file(folder + "cgroup", "0::/system.slice/" + comm + ".service\n");
        thread(pid, pid, comm, allowed, parent, flags, start);
    }
    void thread(int pid, int tid, const std::string& comm, const std::string& allowed = "0-3", int parent = 1,
                unsigned flags = 0, int start = 100) const {
        write_task("proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/", pid, tid, comm,
                   allowed, parent, flags, start);
    }
    void end(int pid) const { std::filesystem::remove_all(tree_.path("proc/" + std::to_string(pid))); }
    void end_thread(int pid, int tid) const {
        std::filesystem::remove_all(
            tree_.path("proc/" + std::to_string(pid) + "/task/" + std::to_string(tid)));
    }

    void policy(const std::string& name, const std::string& text) const {
        tree_.file("policies/" + name + ".yaml", "version: 1\n" + text);
    }
    [[nodiscard]] std::string policies() const { return tree_.path("policies"); }
    [[nodiscard]] std::string path(std::string_view name = {}) const { return tree_.path(name); }
    [[nodiscard]] const Tree& tree() const { return tree_; }

    /// What a task's own file says now, "" if there is none.
    [[nodiscard]] std::string allowed(int pid, int tid) const {
        const auto root = host::Root::open(tree_.path());
        if (!root) return {};
        const auto mask = inventory::read_allowed(*root, pid, tid);
        return mask ? mask->to_list() : "";
    }
    [[nodiscard]] std::string irq(unsigned number) const {
        return text("proc/irq/" + std::to_string(number) + "/smp_affinity_list");
    }
    [[nodiscard]] std::string steering(const std::string& file, const std::string& nic = "eth0") const {
        return text("sys/class/net/" + nic + "/queues/" + file);
    }
    /// Somebody else's write.
    void set_irq(unsigned number, const std::string& mask) const {
        tree_.file("proc/irq/" + std::to_string(number) + "/smp_affinity_list", mask + "\n");
    }

    /// An interface of two queues, with the interrupts `irq` and `irq` + 1.
    void add_nic(const std::string& name, const std::string& function, unsigned irq) {
        const std::string device = "sys/devices/pci0000:00/" + function + "/";
        const std::string nic = device + "net/" + name + "/";
        tree_.file(device + "numa_node", "0\n");
        tree_.file(device + "local_cpulist", "0-3\n");
        for (unsigned queue = 0; queue < 2; ++queue) {
            const auto number = std::to_string(irq + queue);
            const auto label = name + "-TxRx-" + std::to_string(queue);
            tree_.file(device + "msi_irqs/" + number, "msix\n");
            set_irq(irq + queue, "0-3");
            tree_.folder("proc/irq/" + number + "/" + label);
            interrupts_ +=
                fmt::format(" {}:  5 0 0 0  PCI-MSIX-{}  {}-edge  {}\n", number, function, queue, label);
            for (const char* file : {"rx-{}/rps_cpus", "tx-{}/xps_cpus"})
                tree_.file(nic + "queues/" + fmt::format(fmt::runtime(file), queue), "0\n");
        }
        tree_.file("proc/interrupts", "           CPU0       CPU1       CPU2       CPU3\n" + interrupts_);
        tree_.file(nic + "ifindex", std::to_string(irq) + "\n");
        tree_.file(nic + "flags", "0x1003\n");
        tree_.file(nic + "operstate", "up\n");
        tree_.link(nic + "device", "../..");
        tree_.link("sys/class/net/" + name, "../../devices/pci0000:00/" + function + "/net/" + name);
    }

    /// The interface gets another name; its index, its queues and the labels of its interrupts stay.
    void rename_nic(const std::string& from, const std::string& to, const std::string& function) const {
        const std::string folder = "sys/devices/pci0000:00/" + function + "/net/";
        std::filesystem::remove(path("sys/class/net/" + from));
        std::filesystem::rename(path(folder + from), path(folder + to));
        tree_.link("sys/class/net/" + to, "../../devices/pci0000:00/" + function + "/net/" + to);
    }

    [[nodiscard]] std::string all_of(const std::string& name) const {
        std::ostringstream text;
        text << std::ifstream(tree_.path(name)).rdbuf();
        return text.str();
    }
    /// The first line of a file.
    [[nodiscard]] std::string text(const std::string& name) const {
        std::ifstream file(tree_.path(name));
        std::string line;
        std::getline(file, line);
        return line;
    }

  private:
    void write_task(const std::string& folder, int pid, int tid, const std::string& comm,
                    const std::string& allowed, int parent, unsigned flags, int start) const {
        tree_.file(folder + "stat", std::to_string(tid) + " (" + comm + ") S " + std::to_string(parent) +
                                        " 1 1 0 -1 " + std::to_string(flags) + " 0 0 0 0 0 0 0 0 20 0 2 0 " +
                                        std::to_string(start) + " 0 0\n");
        tree_.file(folder + "status", "Name:\t" + comm + "\nTgid:\t" + std::to_string(pid) +
                                          "\nUid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\n" +
                                          "Cpus_allowed_list:\t" + allowed + "\nMems_allowed_list:\t0\n");
    }
    Tree tree_;
    std::string interrupts_;
};

} // namespace affinityd::app::test
