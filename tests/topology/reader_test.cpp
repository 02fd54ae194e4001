// SPDX-License-Identifier: Apache-2.0
#include "host/root.hpp"
#include "support/no_descriptors_left.hpp"
#include "support/tree.hpp"
#include "topology/reader.hpp"

#include <cerrno>

#include <gtest/gtest.h>

namespace affinityd::topology {
namespace {

class ReaderTest : public testing::Test {
  protected:
    void cpu(unsigned id, const std::string& package, const std::string& core, const std::string& siblings) {
        const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(id) + "/topology/";
        tree_.file(folder + "physical_package_id", package + "\n");
        tree_.file(folder + "core_id", core + "\n");
        if (!siblings.empty()) tree_.file(folder + "thread_siblings_list", siblings + "\n");
    }
    void masks(const std::string& online, const std::string& present) {
        tree_.file("sys/devices/system/cpu/online", online + "\n");
        tree_.file("sys/devices/system/cpu/present", present + "\n");
        tree_.file("sys/devices/system/cpu/possible", present + "\n");
    }
    void cache(unsigned cpu, unsigned index, const std::string& level, const std::string& type,
               const std::string& shared) {
        const std::string folder =
            "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index) + "/";
        tree_.file(folder + "level", level + "\n");
        tree_.file(folder + "type", type + "\n");
        tree_.file(folder + "size", "32K\n");
        tree_.file(folder + "shared_cpu_list", shared + "\n");
    }
    Result<Topology> read() { return read_topology(*host::Root::open(tree_.path())); }
    test::Tree tree_;
};

std::vector<std::string> lists(const std::vector<CpuSet>& groups) {
    std::vector<std::string> texts;
    for (const auto& group : groups)
        texts.push_back(group.to_list());
    return texts;
}

TEST_F(ReaderTest, NoCpusAtAllIsAnError) { EXPECT_FALSE(read()); }

TEST_F(ReaderTest, CpuZeroOfflineAndIdsOfMinusOneAreValues) {
    masks("1-2", "0-2");
    cpu(1, "-1", "-1", "");
    cpu(2, "-1", "-1", "");
    const auto topology = read();
    ASSERT_TRUE(topology) << topology.error().to_string();
    EXPECT_EQ(topology->offline.to_list(), "0");
    EXPECT_EQ(topology->cpus.size(), 2U);
    EXPECT_FALSE(topology->cpus[0].package);
    EXPECT_EQ(topology->cpus[0].smt.to_list(), "1");
    EXPECT_EQ(lists(topology->cores), (std::vector<std::string>{"1", "2"}));
    EXPECT_EQ(topology->housekeeping.to_list(), "1-2");
    EXPECT_EQ(topology->llc_of(1).to_list(), "1-2") << "nothing recorded divides them";
}

TEST_F(ReaderTest, SiblingsIsolationNodesAndCaches) {
    masks("0-3", "0-3");
    tree_.file("sys/devices/system/cpu/isolated", "3\n");
    tree_.file("sys/devices/system/cpu/nohz_full", "(null)\n");
    for (unsigned id = 0; id < 4; ++id) {
        cpu(id, "0", std::to_string(id / 2), id < 2 ? "0-1" : "2-3");
        cache(id, 0, "1", "Data", id < 2 ? "0-1" : "2-3");
        cache(id, 1, "1", "Instruction", id < 2 ? "0-1" : "2-3");
        cache(id, 2, "3", "Unified", "0-3");
    }
    tree_.file("sys/devices/system/node/node0/cpulist", "0-1\n");
    tree_.file("sys/devices/system/node/node0/distance", "10 21\n");
    tree_.file("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       1024 kB\n");
    tree_.file("sys/devices/system/node/node2/cpulist", "\n");
    tree_.file("sys/devices/system/node/node2/distance", "21 10\n");
    const auto topology = read();
    ASSERT_TRUE(topology);
    EXPECT_EQ(lists(topology->cores), (std::vector<std::string>{"0-1", "2-3"}));
    EXPECT_EQ(topology->smt_secondary().to_list(), "1,3");
    EXPECT_EQ(topology->isolated.to_list(), "3");
    EXPECT_TRUE(topology->nohz_full.empty());
    EXPECT_EQ(topology->housekeeping.to_list(), "0-2");
    EXPECT_EQ(lists(topology->llc_groups()), (std::vector<std::string>{"0-3"}));
    EXPECT_EQ(lists(topology->cache_groups(1)), (std::vector<std::string>{"0-1", "2-3"}));
    ASSERT_EQ(topology->nodes.size(), 2U);
    EXPECT_EQ(topology->nodes[0].memory_bytes, 1024U * 1024U);
    EXPECT_EQ(topology->nodes[0].distance, (std::vector<unsigned>{10, 21}));
    EXPECT_EQ(topology->nodes[1].id, 2U);
    EXPECT_TRUE(topology->nodes[1].cpus.empty());
    EXPECT_EQ(topology->cpus[1].node, 0U);
    EXPECT_FALSE(topology->cpus[2].node) << "in no node";
}

// As a hostile recording has them: four hundred nodes with a megabyte of distances each took two gigabytes.
TEST_F(ReaderTest, NodesAndTheirDistancesAreBounded) {
    masks("0", "0");
    cpu(0, "0", "0", "0");
    std::string distance;
    for (unsigned at = 0; at < 20'000; ++at)
        distance += "10 ";
    for (unsigned id = 0; id < 3; ++id)
        tree_.file("sys/devices/system/node/node" + std::to_string(id) + "/distance", distance);
    auto topology = read();
    ASSERT_TRUE(topology);
    ASSERT_EQ(topology->nodes.size(), 3U);
    for (const auto& node : topology->nodes)
        EXPECT_EQ(node.distance, (std::vector<unsigned>{10, 10, 10}));
    for (unsigned id = 3; id < 1100; ++id)
        tree_.file("sys/devices/system/node/node" + std::to_string(id) + "/cpulist", "\n");
    topology = read();
    ASSERT_TRUE(topology);
    EXPECT_EQ(topology->nodes.size(), 1024U);
    EXPECT_EQ(topology->nodes.front().distance.size(), 1024U);
}

TEST_F(ReaderTest, MasksOfDevicesAreCutToThePossibleCpus) {
    masks("0-1", "0-1");
    tree_.file("sys/bus/pci/devices/0000:00:00.0/class", "0x020000\n");
    tree_.file("sys/bus/pci/devices/0000:00:00.0/local_cpulist", "1,1048575\n");
    const auto devices = read_pci_devices(*host::Root::open(tree_.path()));
    ASSERT_TRUE(devices);
    ASSERT_EQ(devices->size(), 1U);
    EXPECT_EQ(devices->front().local_cpus.to_list(), "1");
}

TEST_F(ReaderTest, MoreThan1024Cpus) {
    masks("0,2000", "0-2047");
    cpu(0, "0", "0", "0");
    cpu(2000, "7", "0", "2000");
    const auto topology = read();
    ASSERT_TRUE(topology);
    EXPECT_EQ(topology->cpus.back().id, 2000U);
    EXPECT_EQ(topology->offline.count(), 2046U);
    EXPECT_EQ(topology->package_of(2000).to_list(), "");
}

TEST_F(ReaderTest, GarbageInFilesIsNotKnownRatherThanACrash) {
    tree_.file("sys/devices/system/cpu/online", "0-1\0\0");
    cpu(0, "banana", "99999999999999999999", "7-3");
    cpu(1, "0", "1", "0-4294967295");
    cache(0, 0, "-4", "Unified", "0");
    cache(1, 0, "2", "Weird", "0");
    tree_.file("sys/devices/system/node/node0/cpulist", "x");
    tree_.file("sys/devices/system/node/node0/distance", "10 z 4294967296");
    const auto topology = read();
    ASSERT_TRUE(topology);
    EXPECT_FALSE(topology->cpus[0].package);
    EXPECT_EQ(topology->cpus[0].smt.to_list(), "0");
    EXPECT_TRUE(topology->caches.empty());
    EXPECT_TRUE(topology->nodes[0].cpus.empty());
}

TEST_F(ReaderTest, UnlikeCoresByCapacityOrByTheKernelsLists) {
    masks("0-3", "0-3");
    for (unsigned id = 0; id < 4; ++id)
        tree_.file("sys/devices/system/cpu/cpu" + std::to_string(id) + "/cpu_capacity",
                   id < 2 ? "1024\n" : "400\n");
    auto topology = read();
    ASSERT_EQ(topology->kinds.size(), 2U);
    EXPECT_EQ(topology->kinds[0].name, "performance");
    EXPECT_EQ(topology->kinds[1].cpus.to_list(), "2-3");
    tree_.file("sys/devices/cpu_core/cpus", "3\n");
    tree_.file("sys/devices/cpu_atom/cpus", "0-2\n");
    topology = read();
    EXPECT_EQ(topology->kinds[0].cpus.to_list(), "3");
}

TEST_F(ReaderTest, CpusThatCannotBeListedAreAFault) {
    masks("0-1", "0-1");
    cpu(0, "0", "0", "0");
    cpu(1, "0", "1", "1");
    const auto root = host::Root::open(tree_.path());
    ASSERT_TRUE(root);
    const test::NoDescriptorsLeft none(1); // for the folder, not for its list
    const auto topology = read_topology(*root);
    ASSERT_FALSE(topology);
    EXPECT_EQ(topology.error().code, EMFILE);
}

} // namespace
} // namespace affinityd::topology
