// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"
#include "inventory/lookup.hpp"
#include "support/tree.hpp"

#include <chrono>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace affinityd::app::test {

using affinityd::test::Tree;

/// A machine out of files: four CPUs (siblings 0-1 and 2-3, one cache), a NIC eth0 of two queues with
/// interrupts 30 and 31, and the processes a test puts there.
class Machine {
  public:
    Machine();

    /// The main thread, and so the process. `start` tells it from a later one of the same number.
    void process(int pid, const std::string& comm, const std::string& allowed = "0-3", int parent = 1,
                 unsigned flags = 0, int start = 100) const;
    void thread(int pid, int tid, const std::string& comm, const std::string& allowed = "0-3", int parent = 1,
                unsigned flags = 0, int start = 100) const;
    /// For how long a thread ran or wanted to, since its birth.
    void wanted(int pid, int tid, std::chrono::nanoseconds time) const;
    void end(int pid) const { std::filesystem::remove_all(tree_.path("proc/" + std::to_string(pid))); }
    void end_thread(int pid, int tid) const;

    void policy(const std::string& name, const std::string& text) const;
    [[nodiscard]] std::string policies() const { return tree_.path("policies"); }
    [[nodiscard]] std::string path(std::string_view name = {}) const { return tree_.path(name); }
    [[nodiscard]] const Tree& tree() const { return tree_; }

    /// What a task's own file says now, "" if there is none.
    [[nodiscard]] std::string allowed(int pid, int tid) const;
    [[nodiscard]] std::string irq(unsigned number) const;
    [[nodiscard]] std::string steering(const std::string& file, const std::string& nic = "eth0") const;
    /// Somebody else's write.
    void set_irq(unsigned number, const std::string& mask) const;

    /// An interface of two queues, with the interrupts `irq` and `irq` + 1.
    void add_nic(const std::string& name, const std::string& function, unsigned irq);

    /// An interface made of software, of one queue and without interrupts; and the same under another name.
    void add_virtual(const std::string& name, unsigned ifindex) const;
    void rename_virtual(const std::string& from, const std::string& to) const;

    /// The driver frees the handlers of the interface's interrupts, as some do while the link is down.
    void free_handlers(const std::string& name, unsigned irq);
    /// The driver takes the same lines again.
    void request_handlers(const std::string& name, const std::string& function, unsigned irq);
    /// An interface of one queue on an interrupt line that other devices may be on.
    void add_nic_on_line(const std::string& name, const std::string& function, unsigned irq);
    /// A driver requests the line, or frees its handler.
    void add_handler(unsigned irq, const std::string& label);
    void remove_handler(unsigned irq, const std::string& label);

    /// The interface gets another name; its index, its queues and the labels of its interrupts stay.
    void rename_nic(const std::string& from, const std::string& to, const std::string& function) const;

    [[nodiscard]] std::string all_of(const std::string& name) const;
    /// The first line of a file.
    [[nodiscard]] std::string text(const std::string& name) const;

  private:
    void write_task(const std::string& folder, int pid, int tid, const std::string& comm,
                    const std::string& allowed, int parent, unsigned flags, int start) const;
    Tree tree_;
    void write_interrupts() const;
    std::map<unsigned, std::string> interrupts_;            ///< number -> line
    std::map<unsigned, std::vector<std::string>> handlers_; ///< of lines that may be shared
    void write_line(unsigned irq);
};

} // namespace affinityd::app::test
