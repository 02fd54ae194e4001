// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/tree.hpp"
#include "host/root.hpp"
#include "inventory/process_scan.hpp"

#include <string>

#include <gtest/gtest.h>

namespace affinityd::test {

struct RecordedTask {
    int id = 1;
    std::string comm = "task";
    char state = 'S';
    int parent = 1;
    unsigned flags = 0;
    int threads = 1;
    unsigned long long start = 100;
    std::string allowed = "0-3";

    [[nodiscard]] std::string stat() const {
        return std::to_string(id) + " (" + comm + ") " + state + " " + std::to_string(parent) + " 1 1 0 -1 " +
               std::to_string(flags) + " 0 0 0 0 0 0 0 0 20 0 " + std::to_string(threads) + " 0 " +
               std::to_string(start) + " 0 0\n";
    }
    [[nodiscard]] std::string status() const {
        return "Name:\t" + comm +
               "\nUid:\t1000\t33\t1000\t1000\nGid:\t1000\t34\t1000\t1000\nCpus_allowed:\tf\nCpus_allowed_"
               "list:\t" +
               allowed + "\nMems_allowed_list:\t0\n";
    }
};

inline void add_process(const Tree& tree, const RecordedTask& task) {
    const std::string folder = "proc/" + std::to_string(task.id) + "/";
    tree.file(folder + "stat", task.stat());
    tree.file(folder + "status", task.status());
}

inline void add_thread(const Tree& tree, int pid, const RecordedTask& task) {
    const std::string folder = "proc/" + std::to_string(pid) + "/task/" + std::to_string(task.id) + "/";
    tree.file(folder + "stat", task.stat());
    tree.file(folder + "status", task.status());
}

/// A process with its threads, read in one go.
struct WholeProcess {
    std::shared_ptr<inventory::ProcessFacts> facts;
    std::vector<inventory::Thread> threads;
};

inline std::optional<WholeProcess> read_process(const host::Root& root, int pid,
                                                inventory::FactSources* sources = nullptr) {
    auto scan = inventory::ProcessScan::open(root, pid, sources);
    EXPECT_TRUE(scan) << scan.error().to_string();
    if (!scan || !*scan) return std::nullopt;
    (*scan)->step([] { return false; });
    auto threads = (*scan)->take_threads();
    EXPECT_TRUE(threads) << threads.error().to_string();
    return WholeProcess{(*scan)->shared_facts(), threads.value_or(std::vector<inventory::Thread>{})};
}

inline host::Root open_root(const Tree& tree) {
    auto root = host::Root::open(tree.path());
    EXPECT_TRUE(root) << root.error().to_string();
    return std::move(*root);
}

} // namespace affinityd::test
