// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/manager.hpp"
#include "host/root.hpp"
#include "inventory/lookup.hpp"
#include "planner/flow_counts.hpp"
#include "support/tree.hpp"

#include <cerrno>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

namespace affinityd::app::test {

using affinityd::test::Tree;

/// A log that can be read.
class ReadableLog {
  public:
    ReadableLog() : sink_(std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)) {
        auto logger = std::make_shared<spdlog::logger>("test", sink_);
        logger->set_pattern("%l %v");
        logger->set_level(spdlog::level::debug);
        log_ = std::make_unique<Log>(std::move(logger));
    }
    [[nodiscard]] Log& log() { return *log_; }
    [[nodiscard]] std::string text() const { return text_.str(); }
    [[nodiscard]] std::size_t times(const std::string& part) const {
        std::size_t count = 0;
        const auto all = text();
        for (auto at = all.find(part); at != std::string::npos; at = all.find(part, at + 1))
            ++count;
        return count;
    }

  private:
    std::ostringstream text_;
    std::shared_ptr<spdlog::sinks::ostream_sink_mt> sink_;
    std::unique_ptr<Log> log_;
};

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
        add_nic();
        tree_.file("proc/interrupts", "           CPU0       CPU1       CPU2       CPU3\n"
                                      " 30:  5 0 0 0  PCI-MSIX-0000:00:03.0  0-edge  eth0-TxRx-0\n"
                                      " 31:  5 0 0 0  PCI-MSIX-0000:00:03.0  1-edge  eth0-TxRx-1\n");
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
    [[nodiscard]] std::string steering(const std::string& file) const {
        return text("sys/class/net/eth0/queues/" + file);
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
    void add_nic() const {
        const std::string device = "sys/devices/pci0000:00/0000:00:03.0/";
        const std::string nic = device + "net/eth0/";
        tree_.file(device + "numa_node", "0\n");
        tree_.file(device + "local_cpulist", "0-3\n");
        for (const char* number : {"30", "31"}) {
            tree_.file(device + "msi_irqs/" + number, "msix\n");
            tree_.file(std::string("proc/irq/") + number + "/smp_affinity_list", "0-3\n");
        }
        tree_.folder("proc/irq/30/eth0-TxRx-0");
        tree_.folder("proc/irq/31/eth0-TxRx-1");
        tree_.file(nic + "ifindex", "2\n");
        tree_.file(nic + "flags", "0x1003\n");
        tree_.file(nic + "operstate", "up\n");
        for (const char* queue : {"rx-0/rps_cpus", "rx-1/rps_cpus", "tx-0/xps_cpus", "tx-1/xps_cpus"})
            tree_.file(nic + "queues/" + queue, "0\n");
        tree_.link(nic + "device", "../..");
        tree_.link("sys/class/net/eth0", "../../devices/pci0000:00/0000:00:03.0/net/eth0");
    }
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
};

/// Acts, but on the simulated machine: what is applied stands in its files afterwards, as the kernel would
/// have it.
class SimulatedEnforcer final : public enforcer::Enforcer {
  public:
    explicit SimulatedEnforcer(const Machine& machine) : machine_(machine) {}

    enforcer::Applied apply(const planner::Action& action) override {
        ++applied;
        std::this_thread::sleep_for(takes);
        const auto refused = refuse.find(planner::to_string(action.subject));
        if (refused != refuse.end()) return {refused->second, {}, 5};
        const auto code = refuse_with.find(planner::to_string(action.subject));
        if (code != refuse_with.end()) return {enforcer::irq_outcome(code->second), {}, code->second};
        if (std::holds_alternative<planner::IrqMask>(action.subject) && full.intersects(action.to))
            return {enforcer::irq_outcome(ENOSPC), {}, ENOSPC};
        if (!present(action.subject)) return {enforcer::Outcome::gone, {}, 3};
        std::visit([&](const auto& subject) { write(subject, action.to); }, action.subject);
        return {enforcer::Outcome::done, action.to, 0};
    }
    std::optional<CpuSet> present(const planner::Subject& subject) override {
        return std::visit([&](const auto& what) { return read(what); }, subject);
    }
    void move_memory(enforcer::MemoryMove move) override { moves.push_back(std::move(move)); }
    std::vector<enforcer::MemoryMoved> take_moved() override { return std::exchange(moved, {}); }
    [[nodiscard]] bool acts() const override { return true; }

    std::map<std::string, CpuSet> units;             ///< loaded units and their AllowedCPUs
    std::vector<enforcer::MemoryMove> moves;         ///< asked for
    std::vector<enforcer::MemoryMoved> moved;        ///< what take_moved() shall tell next
    std::map<std::string, enforcer::Outcome> refuse; ///< by planner::to_string of the subject
    std::map<std::string, int>
        refuse_with; ///< the same with what the kernel would say of an interrupt: an errno value
    CpuSet full;     ///< CPUs without an interrupt vector left
    unsigned applied = 0;
    std::chrono::milliseconds takes{0}; ///< each change

  private:
    std::optional<CpuSet> read(const planner::TaskMask& task) {
        const auto root = host::Root::open(machine_.path());
        const auto thread = inventory::read_thread(*root, task.pid, task.task.tid);
        if (!thread || thread->id != task.task) return std::nullopt;
        return thread->allowed;
    }
    std::optional<CpuSet> read(const planner::IrqMask& irq) {
        const auto text = CpuSet::parse_list(machine_.irq(irq.irq));
        return text ? std::optional(*text) : std::nullopt;
    }
    std::optional<CpuSet> read(const planner::SteeringMask& steering) {
        if (planner::is_flow_count(steering)) {
            const auto number = machine_.text(flow_file_of(steering));
            return number.empty()
                       ? std::nullopt
                       : std::optional(planner::to_bits(static_cast<std::uint32_t>(std::stoul(number))));
        }
        const auto text = CpuSet::parse_mask(machine_.steering(file_of(steering)));
        return text ? std::optional(*text) : std::nullopt;
    }
    std::optional<CpuSet> read(const planner::UnitCpuset& cpuset) {
        const auto found = units.find(cpuset.unit);
        return found == units.end() ? std::nullopt : std::optional(found->second);
    }
    void write(const planner::UnitCpuset& cpuset, const CpuSet& to) { units[cpuset.unit] = to; }
    static std::string file_of(const planner::SteeringMask& steering) {
        return steering.queue + (steering.queue.starts_with("rx") ? "/rps_cpus" : "/xps_cpus");
    }
    void write(const planner::TaskMask& task, const CpuSet& to) {
        const bool main = task.pid == task.task.tid;
        const auto name = "proc/" + std::to_string(task.pid) + "/";
        const auto own = name + "task/" + std::to_string(task.task.tid) + "/status";
        for (const auto& file : main ? std::vector{own, name + "status"} : std::vector{own}) {
            std::ifstream in(machine_.path(file));
            std::string text, line;
            while (std::getline(in, line))
                text +=
                    (line.starts_with("Cpus_allowed_list:") ? "Cpus_allowed_list:\t" + to.to_list() : line) +
                    "\n";
            machine_.tree().file(file, text);
        }
    }
    void write(const planner::IrqMask& irq, const CpuSet& to) {
        machine_.tree().file("proc/irq/" + std::to_string(irq.irq) + "/smp_affinity_list",
                             to.to_list() + "\n");
    }
    static std::string flow_file_of(const planner::SteeringMask& steering) {
        if (planner::is_machine_flows(steering)) return "proc/sys/net/core/rps_sock_flow_entries";
        return "sys/class/net/eth0/queues/" + planner::queue_of(steering) + "/rps_flow_cnt";
    }
    void write(const planner::SteeringMask& steering, const CpuSet& to) {
        if (planner::is_flow_count(steering)) {
            machine_.tree().file(flow_file_of(steering), std::to_string(planner::from_bits(to)) + "\n");
            return;
        }
        machine_.tree().file("sys/class/net/eth0/queues/" + file_of(steering), to.to_mask() + "\n");
    }
    const Machine& machine_;
};

/// A manager on a simulated machine, with everything it refers to.
class Instance {
  public:
    /// `acting`: changes the simulated machine; else it only records, as with --dry-run.
    explicit Instance(const Machine& machine, bool acting = true)
        : root_(*host::Root::open(machine.path())),
          journal_(*state::Journal::open(acting ? machine.path("undo.journal") : "")), simulated_(machine),
          recording_(enforcer::make_recording_enforcer()) {
        Settings settings;
        settings.policy_folders = {machine.policies()};
        settings.dry_run = true; // no history in the usual place
        settings.runtime_dir = machine.path("run");
        settings.irqbalance_dir = machine.path("run/irqbalance");
        std::filesystem::create_directories(settings.runtime_dir);
        enforcer::Enforcer& enforcer = acting ? static_cast<enforcer::Enforcer&>(simulated_) : *recording_;
        manager_ = std::make_unique<Manager>(Manager::Parts{root_, journal_, enforcer, log_.log(), settings});
    }
    [[nodiscard]] Manager& manager() { return *manager_; }
    [[nodiscard]] state::Journal& journal() { return journal_; }
    [[nodiscard]] SimulatedEnforcer& enforcer() { return simulated_; }
    [[nodiscard]] ReadableLog& log() { return log_; }

    /// A whole pass.
    void pass(bool machine_changed = false) {
        manager_->begin_reconcile(machine_changed);
        while (!manager_->reconcile_step([] { return false; })) {
        }
    }
    void finish() {
        while (!manager_->reconcile_step([] { return false; })) {
        }
    }
    [[nodiscard]] nlohmann::json status() { return nlohmann::json::parse(manager_->status()); }
    [[nodiscard]] nlohmann::json plan() { return nlohmann::json::parse(manager_->plan()); }

  private:
    host::Root root_;
    ReadableLog log_;
    state::Journal journal_;
    SimulatedEnforcer simulated_;
    std::unique_ptr<enforcer::Enforcer> recording_;
    std::unique_ptr<Manager> manager_;
};

/// What status says of a thread.
inline std::string state_of(const nlohmann::json& status, int pid, int tid) {
    for (const auto& process : status["processes"])
        for (const auto& thread : process["threads"])
            if (process["pid"] == pid && thread["tid"] == tid) return thread["state"];
    return "not under policy";
}

} // namespace affinityd::app::test
