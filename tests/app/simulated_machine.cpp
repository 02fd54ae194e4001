// SPDX-License-Identifier: Apache-2.0
#include "simulated_machine.hpp"

#include "host/root.hpp"
#include "inventory/lookup.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace affinityd::app::test {

Machine::Machine() {
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

void Machine::process(int pid, const std::string& comm, const std::string& allowed, int parent,
                      unsigned flags, int start) const {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    write_task(folder, pid, pid, comm, allowed, parent, flags, start);
    tree_.file(folder + "cgroup", "0::/system.slice/" + comm + ".service\n");
    thread(pid, pid, comm, allowed, parent, flags, start);
}

void Machine::thread(int pid, int tid, const std::string& comm, const std::string& allowed, int parent,
                     unsigned flags, int start) const {
    write_task("proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/", pid, tid, comm, allowed,
               parent, flags, start);
}

void Machine::wanted(int pid, int tid, std::chrono::nanoseconds time) const {
    tree_.file(fmt::format("proc/{}/task/{}/schedstat", pid, tid),
               fmt::format("{} {} 7\n", time.count() / 2, time.count() - time.count() / 2));
}

void Machine::end_thread(int pid, int tid) const {
    std::filesystem::remove_all(tree_.path("proc/" + std::to_string(pid) + "/task/" + std::to_string(tid)));
}

void Machine::policy(const std::string& name, const std::string& text) const {
    tree_.file("policies/" + name + ".yaml", "version: 1\n" + text);
}

std::string Machine::allowed(int pid, int tid) const {
    const auto root = host::Root::open(tree_.path());
    if (!root) return {};
    const auto mask = inventory::read_allowed(*root, pid, tid);
    return mask ? mask->to_list() : "";
}

std::string Machine::irq(unsigned number) const {
    return text("proc/irq/" + std::to_string(number) + "/smp_affinity_list");
}

std::string Machine::steering(const std::string& file, const std::string& nic) const {
    return text("sys/class/net/" + nic + "/queues/" + file);
}

void Machine::set_irq(unsigned number, const std::string& mask) const {
    tree_.file("proc/irq/" + std::to_string(number) + "/smp_affinity_list", mask + "\n");
}

void Machine::add_nic(const std::string& name, const std::string& function, unsigned irq) {
    const std::string device = "sys/devices/pci0000:00/" + function + "/";
    const std::string nic = device + "net/" + name + "/";
    tree_.file(device + "numa_node", "0\n");
    tree_.file(device + "local_cpulist", "0-3\n");
    request_handlers(name, function, irq);
    for (unsigned queue = 0; queue < 2; ++queue) {
        tree_.file(device + "msi_irqs/" + std::to_string(irq + queue), "msix\n");
        set_irq(irq + queue, "0-3");
        for (const char* file : {"rx-{}/rps_cpus", "tx-{}/xps_cpus"})
            tree_.file(nic + "queues/" + fmt::format(fmt::runtime(file), queue), "0\n");
    }
    tree_.file(nic + "ifindex", std::to_string(irq) + "\n");
    tree_.file(nic + "flags", "0x1003\n");
    tree_.file(nic + "operstate", "up\n");
    tree_.link(nic + "device", "../..");
    tree_.link("sys/class/net/" + name, "../../devices/pci0000:00/" + function + "/net/" + name);
}

void Machine::add_virtual(const std::string& name, unsigned ifindex) const {
    const std::string nic = "sys/devices/virtual/net/" + name + "/";
    for (const char* file : {"rx-0/rps_cpus", "tx-0/xps_cpus"})
        tree_.file(nic + "queues/" + file, "0\n");
    tree_.file(nic + "ifindex", std::to_string(ifindex) + "\n");
    tree_.file(nic + "flags", "0x1003\n");
    tree_.file(nic + "operstate", "up\n");
    tree_.link("sys/class/net/" + name, "../../devices/virtual/net/" + name);
}

void Machine::rename_virtual(const std::string& from, const std::string& to) const {
    const std::string folder = "sys/devices/virtual/net/";
    std::filesystem::remove(path("sys/class/net/" + from));
    std::filesystem::rename(path(folder + from), path(folder + to));
    tree_.link("sys/class/net/" + to, "../../devices/virtual/net/" + to);
}

void Machine::request_handlers(const std::string& name, const std::string& function, unsigned irq) {
    for (unsigned queue = 0; queue < 2; ++queue) {
        const auto number = std::to_string(irq + queue);
        const auto label = name + "-TxRx-" + std::to_string(queue);
        tree_.folder("proc/irq/" + number + "/" + label);
        tree_.file("sys/kernel/irq/" + number + "/actions", label + "\n");
        interrupts_[irq + queue] =
            fmt::format(" {}:  5 0 0 0  PCI-MSIX-{}  {}-edge  {}\n", number, function, queue, label);
    }
    write_interrupts();
}

void Machine::free_handlers(const std::string& name, unsigned irq) {
    for (unsigned queue = 0; queue < 2; ++queue) {
        const auto number = std::to_string(irq + queue);
        std::filesystem::remove(path("proc/irq/" + number + "/" + name + "-TxRx-" + std::to_string(queue)));
        tree_.file("sys/kernel/irq/" + number + "/actions", "\n");
        interrupts_.erase(irq + queue);
    }
    write_interrupts();
}

void Machine::add_nic_on_line(const std::string& name, const std::string& function, unsigned irq) {
    const std::string device = "sys/devices/pci0000:00/" + function + "/";
    const std::string nic = device + "net/" + name + "/";
    tree_.file(device + "numa_node", "0\n");
    tree_.file(device + "local_cpulist", "0-3\n");
    tree_.file(device + "irq", std::to_string(irq) + "\n");
    for (const char* file : {"rx-0/rps_cpus", "tx-0/xps_cpus"})
        tree_.file(nic + "queues/" + file, "0\n");
    tree_.file(nic + "ifindex", std::to_string(100 + handlers_[irq].size()) + "\n");
    tree_.file(nic + "flags", "0x1003\n");
    tree_.file(nic + "operstate", "up\n");
    tree_.link(nic + "device", "../..");
    tree_.link("sys/class/net/" + name, "../../devices/pci0000:00/" + function + "/net/" + name);
    if (handlers_[irq].empty()) set_irq(irq, "0-3");
    add_handler(irq, name);
}

void Machine::add_handler(unsigned irq, const std::string& label) {
    handlers_[irq].push_back(label);
    tree_.folder(fmt::format("proc/irq/{}/{}", irq, label));
    write_line(irq);
}

void Machine::remove_handler(unsigned irq, const std::string& label) {
    std::erase(handlers_[irq], label);
    std::filesystem::remove(path(fmt::format("proc/irq/{}/{}", irq, label)));
    write_line(irq);
}

void Machine::write_line(unsigned irq) {
    const auto& handlers = handlers_[irq];
    const auto folder = fmt::format("sys/kernel/irq/{}/", irq);
    tree_.file(folder + "actions", fmt::format("{}\n", fmt::join(handlers, ",")));
    tree_.file(folder + "chip_name", "IO-APIC\n");
    interrupts_[irq] =
        fmt::format(" {0}:  5 0 0 0  IO-APIC  {0}-fasteoi   {1}\n", irq, fmt::join(handlers, ", "));
    if (handlers.empty()) interrupts_.erase(irq);
    write_interrupts();
}

void Machine::write_interrupts() const {
    std::string text = "           CPU0       CPU1       CPU2       CPU3\n";
    for (const auto& [number, line] : interrupts_)
        text += line;
    tree_.file("proc/interrupts", text);
}

void Machine::rename_nic(const std::string& from, const std::string& to, const std::string& function) const {
    const std::string folder = "sys/devices/pci0000:00/" + function + "/net/";
    std::filesystem::remove(path("sys/class/net/" + from));
    std::filesystem::rename(path(folder + from), path(folder + to));
    tree_.link("sys/class/net/" + to, "../../devices/pci0000:00/" + function + "/net/" + to);
}

std::string Machine::all_of(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(tree_.path(name)).rdbuf();
    return text.str();
}

std::string Machine::text(const std::string& name) const {
    std::ifstream file(tree_.path(name));
    std::string line;
    std::getline(file, line);
    return line;
}

void Machine::write_task(const std::string& folder, int pid, int tid, const std::string& comm,
                         const std::string& allowed, int parent, unsigned flags, int start) const {
    tree_.file(folder + "stat", std::to_string(tid) + " (" + comm + ") S " + std::to_string(parent) +
                                    " 1 1 0 -1 " + std::to_string(flags) + " 0 0 0 0 0 0 0 0 20 0 2 0 " +
                                    std::to_string(start) + " 0 0\n");
    tree_.file(folder + "status", "Name:\t" + comm + "\nTgid:\t" + std::to_string(pid) +
                                      "\nUid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\n" +
                                      "Cpus_allowed_list:\t" + allowed + "\nMems_allowed_list:\t0\n");
}

} // namespace affinityd::app::test
