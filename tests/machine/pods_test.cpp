// SPDX-License-Identifier: Apache-2.0
#include "../support/tree.hpp"
#include "host/root.hpp"
#include "machine/pods.hpp"

#include <gtest/gtest.h>

namespace affinityd::machine {
namespace {

const std::string id(64, 'a'), other(64, 'b'), third(64, 'c');

CpuGroup group(const std::string& path, const char* cpus) { return {path, CpuSet::parse_list(cpus).value()}; }

TEST(Pods, HaveForThemselvesWhatNoOtherIsConfinedTo) {
    const auto online = CpuSet::parse_list("0-7").value();
    const std::string pod = "/kubepods.slice/kubepods-pod1.slice/",
                      burstable = "/kubepods.slice/kubepods-burstable.slice/pod2/";
    struct Case {
        std::vector<CpuGroup> groups;
        const char* own;
    };
    const std::vector<Case> cases{
        {{}, ""},
        {{group("/docker/" + id, "0-7")}, ""},
        {{group("/docker/" + id, "2-3")}, "2-3"},
        {{group("/docker/" + id, "2-3"), group("/docker/" + other, "3-4")}, "2,4"},
        {{group("/docker/" + id, "2"), group("/docker/" + other, "2"), group("/docker/" + third, "2")}, ""},
        {{group(pod + id, "2-3"), group(pod + other, "2-3")}, "2-3"}, // of one pod
        {{group(pod + id, "6-7"), group(burstable + other, "0-5")}, "6-7"},
        {{group(burstable + other, "0-5")}, ""},
        {{{"/system.slice/rt.service", CpuSet{5}, true}}, "5"},
    };
    for (const auto& [groups, own] : cases)
        EXPECT_EQ(own_cpus(groups, online).to_list(), own) << groups.size();
}

TEST(Pods, AreReadWhereRootNamedThem) {
    const affinityd::test::Tree tree;
    tree.folder("proc");
    const auto add = [&](const std::string& path, const char* cpus, const char* partition = "member") {
        tree.file("sys/fs/cgroup" + path + "/cgroup.procs", "");
        tree.file("sys/fs/cgroup" + path + "/cpuset.cpus.effective", cpus);
        tree.file("sys/fs/cgroup" + path + "/cpuset.cpus.partition", partition);
    };
    tree.file("sys/fs/cgroup/cgroup.controllers", "cpuset");
    add("/system.slice", "0-7");
    add("/user.slice", "0-7");
    add("/user.slice/user-1000.slice", "0-7");
    add("/system.slice/docker-" + id + ".scope", "1");
    add("/system.slice/docker-" + id + ".scope/inner", "6"); // the container's own affair
    add("/system.slice/web.service", "2");
    add("/user.slice/user-1000.slice/libpod-" + other + ".scope", "3");
    add("/kubepods.slice", "0-7");
    add("/kubepods.slice/kubepods-pod1.slice", "4-5");
    add("/kubepods.slice/kubepods-pod1.slice/crio-" + third + ".scope", "4");
    add("/machine.slice", "7", "root");
    const auto root = host::Root::open(tree.path()).value();
    EXPECT_EQ(read_own_cpus(root, CpuSet::parse_list("0-7").value()).to_list(), "1,4,7");
}

} // namespace
} // namespace affinityd::machine
