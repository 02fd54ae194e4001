// SPDX-License-Identifier: Apache-2.0
#include "inventory/facts.hpp"
#include "recorded.hpp"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::inventory {
namespace {

using namespace test;
using namespace std::string_literals;

TEST(Facts, EverythingASelectorAsks) {
    const Tree tree;
    add_process(tree, {.id = 50, .comm = "nginx", .parent = 49, .start = 777});
    tree.link("proc/50/exe", "/usr/sbin/nginx");
    tree.file("proc/50/cmdline", "nginx: worker\0-c\0/etc/nginx.conf\0\0\0"s);
    tree.file("proc/50/cgroup", "0::/system.slice/nginx.service\n");
    const auto root = open_root(tree);
    FactSources sources(root);
    const auto process = read_process(root, 50, &sources);
    ASSERT_TRUE(process);
    const auto& facts = *process->facts;
    EXPECT_EQ(facts.id(), (TaskId{50, 777}));
    EXPECT_EQ(facts.parent(), 49);
    EXPECT_EQ(facts.comm(), "nginx");
    EXPECT_FALSE(facts.is_kernel());
    EXPECT_EQ(facts.exe(), "/usr/sbin/nginx");
    EXPECT_EQ(facts.cmdline(), "nginx: worker -c /etc/nginx.conf");
    EXPECT_EQ(facts.cgroup(), "/system.slice/nginx.service");
    EXPECT_EQ(facts.uid(), 33U) << "the effective one";
    EXPECT_EQ(facts.gid(), 34U);
    EXPECT_EQ(facts.user(), "33") << "this machine's names say nothing about a recording";
    EXPECT_EQ(facts.group(), "34");
    EXPECT_TRUE(facts.listen_ports().empty());
}

TEST(Facts, AProgramReplacedOnDiskKeepsItsPath) {
    const Tree tree;
    add_process(tree, {.id = 50});
    tree.link("proc/50/exe", "/usr/sbin/nginx (deleted)");
    const auto root = open_root(tree);
    EXPECT_EQ(read_process(root, 50)->facts->exe(), "/usr/sbin/nginx");
}

TEST(Facts, WhatCannotBeReadIsEmptyAndNeverRoot) {
    const Tree tree;
    tree.file("proc/50/stat", RecordedTask{.id = 50}.stat());
    const auto root = open_root(tree);
    const auto process = read_process(root, 50);
    ASSERT_TRUE(process);
    const auto& facts = *process->facts;
    EXPECT_EQ(facts.exe(), "");
    EXPECT_EQ(facts.cmdline(), "");
    EXPECT_EQ(facts.cgroup(), "/");
    EXPECT_EQ(facts.user(), "");
    EXPECT_EQ(facts.group(), "");
    EXPECT_NE(facts.uid(), 0U);
    EXPECT_NE(facts.gid(), 0U);
    EXPECT_TRUE(facts.listen_ports().empty());
}

TEST(Facts, AreReadOnFirstAskAndKept) {
    const Tree tree;
    add_process(tree, {.id = 50});
    const auto root = open_root(tree);
    const auto process = read_process(root, 50);
    tree.file("proc/50/cmdline", "late"); // nothing had been read before
    EXPECT_EQ(process->facts->cmdline(), "late");
    tree.file("proc/50/cmdline", "later");
    EXPECT_EQ(process->facts->cmdline(), "late");
}

TEST(Facts, ARecycledNumberHasNoFacts) {
    const Tree tree;
    add_process(tree, {.id = 50, .start = 100});
    tree.file("proc/50/cmdline", "first");
    const auto root = open_root(tree);
    const auto process = read_process(root, 50);
    add_process(tree, {.id = 50, .start = 200});
    tree.file("proc/50/cmdline", "second");
    tree.link("proc/50/exe", "/second");
    EXPECT_EQ(process->facts->cmdline(), "");
    EXPECT_EQ(process->facts->exe(), "");
    EXPECT_NE(process->facts->uid(), 33U);
}

TEST(Facts, AGoneProcessIsEmpty) {
    const Tree tree;
    add_process(tree, {.id = 50});
    const auto root = open_root(tree);
    const auto process = read_process(root, 50);
    std::filesystem::remove_all(tree.path("proc/50"));
    EXPECT_EQ(process->facts->cmdline(), "");
    EXPECT_EQ(process->facts->exe(), "");
    EXPECT_EQ(process->facts->cgroup(), "/");
    EXPECT_EQ(process->facts->comm(), "task");
}

TEST(Facts, AnEndlessCommandLineIsCut) {
    const Tree tree;
    add_process(tree, {.id = 50});
    tree.file("proc/50/cmdline", std::string(4 << 20, 'x'));
    const auto root = open_root(tree);
    EXPECT_LE(read_process(root, 50)->facts->cmdline().size(), 128U << 10);
}

TEST(Facts, PipesAndLinksInARecordingDoNoHarm) {
    const Tree tree;
    add_process(tree, {.id = 50});
    tree.folder("proc/51");
    ASSERT_EQ(::mkfifo(tree.path("proc/50/cmdline").c_str(), 0600), 0);
    ASSERT_EQ(::mkfifo(tree.path("proc/51/stat").c_str(), 0600), 0);
    tree.link("proc/50/cgroup", "/etc/passwd");
    tree.link("proc/52", "/proc/1");
    const auto root = open_root(tree);
    const auto process = read_process(root, 50);
    ASSERT_TRUE(process);
    EXPECT_EQ(process->facts->cmdline(), "");
    EXPECT_EQ(process->facts->cgroup(), "/");
    EXPECT_FALSE(read_process(root, 51));
    EXPECT_FALSE(read_process(root, 52));
}

TEST(Facts, ListenPortsOfARecording) {
    const Tree tree;
    add_process(tree, {.id = 50});
    tree.link("proc/50/fd/0", "/dev/null");
    tree.link("proc/50/fd/3", "socket:[1001]");
    tree.link("proc/50/fd/4", "socket:[1001]");
    tree.link("proc/50/fd/5", "socket:[1002]");
    tree.link("proc/50/fd/6", "socket:[1003]");
    tree.link("proc/50/fd/7", "socket:[x]");
    const std::string head =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
    tree.file("proc/net/tcp",
              head +
                  "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1001 1\n"
                  "   1: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 9999 1\n"
                  "   2: 0100007F:1F90 0100007F:C000 01 00000000:00000000 00:00000000 00000000 0 0 1003 1\n");
    tree.file("proc/net/udp6",
              head + "   0: 00000000000000000000000000000000:0035 00000000000000000000000000000000:0000 07 "
                     "00000000:00000000 00:00000000 00000000 0 0 1002 1\n");
    const auto root = open_root(tree);
    FactSources sources(root);
    EXPECT_EQ(read_process(root, 50, &sources)->facts->listen_ports(),
              (std::vector<std::uint16_t>{53, 8080}));
}

TEST(Facts, NamesOfARecordingAreItsOwn) {
    const Tree tree;
    add_process(tree, {.id = 50});
    tree.file("etc/passwd", "root:x:0:0::/root:/bin/sh\nwww:x:33:33::/:\n");
    tree.file("etc/group", "adm:x:34:alice\n");
    const auto root = open_root(tree);
    FactSources sources(root, [](NameKind, unsigned) { return std::string("foreign"); });
    const auto process = read_process(root, 50, &sources);
    ASSERT_TRUE(process);
    EXPECT_EQ(process->facts->user(), "www");
    EXPECT_EQ(process->facts->group(), "adm");
    EXPECT_EQ(sources.user(1), "1") << "nobody else is asked";
}

TEST(FactSources, PodsAreReadFromTheConfigurationThatTheirRuntimeWrote) {
    const Tree tree;
    const auto id = [](char digit) { return std::string(64, digit); };
    const std::string tasks = "containerd/io.containerd.runtime.v2.task/k8s.io/";
    const auto root = [&] { return open_root(tree); };
    tree.folder("run");
    EXPECT_FALSE(tells_pods(root()));
    tree.file(
        "run/" + tasks + id('a') + "/config.json",
        R"({"process":{"env":["A=\"io.kubernetes.cri.sandbox-name\":\"x\"","io.kubernetes.cri.sandbox-name","y"]},)"
        R"("annotations":{"io.kubernetes.cri.sandbox-name":"web-1","io.kubernetes.cri.sandbox-namespace":"shop"}})");
    tree.file(
        "run/k3s/" + tasks + id('b') + "/config.json",
        R"({"annotations":{"io.kubernetes.cri.sandbox-namespace":"test","io.kubernetes.cri.sandbox-name":"b"}})");
    tree.file("run/containers/storage/overlay-containers/" + id('c') + "/userdata/config.json",
              "{\n \"annotations\": {\n  \"io.kubernetes.cri.sandbox-name\": \"forged\",\n  "
              "\"io.kubernetes.pod.name\": \"web-3\",\n  "
              "\"io.kubernetes.pod.namespace\" : \"shop\"\n }\n}");
    tree.file("run/" + tasks + id('d') + "/config.json",
              R"({"annotations":{"io.kubernetes.cri.sandbox-name":)");
    EXPECT_TRUE(tells_pods(root()));
    const auto live = root();
    FactSources sources(live);
    EXPECT_EQ(sources.pod(id('a')), (Pod{"web-1", "shop"}));
    EXPECT_EQ(sources.pod(id('b')), (Pod{"b", "test"}));
    EXPECT_EQ(sources.pod(id('c')), (Pod{"web-3", "shop"}));
    for (const char none : {'d', 'e'})
        EXPECT_EQ(sources.pod(id(none)), Pod{}) << none;
    std::filesystem::remove_all(tree.path("run"));
    EXPECT_EQ(sources.pod(id('a')), (Pod{"web-1", "shop"})) << "it was read once";
}

TEST(FactSources, UsersOfAUserNamespaceAreOnePerson) {
    if (::geteuid() != 0) return; // only root can give files away
    const Tree tree;
    for (const int pid : {50, 51, 52, 53})
        add_process(tree, {.id = pid});
    const auto belongs_to = [&](int pid, uid_t user, const char* map) {
        tree.file("proc/" + std::to_string(pid) + "/uid_map", map);
        EXPECT_EQ(::chown(tree.path("proc/" + std::to_string(pid)).c_str(), user, user), 0);
    };
    belongs_to(50, 3'000'000'005, "         0 3000000000      65536\n");
    belongs_to(51, 3'000'000'005, "         0          0 4294967295\n");
    belongs_to(52, 3'000'000'006, "         0       1234          1\n         1 3000000000      65536\n");
    belongs_to(53, 0, "         0          0 4294967295\n");
    const auto root = open_root(tree);
    FactSources sources(root);
    EXPECT_EQ(sources.owner(50), 3'000'000'000);
    EXPECT_EQ(sources.owner(51), 3'000'000'005) << "it is in none";
    EXPECT_EQ(sources.owner(52), 1234U) << "whose root is this user";
    EXPECT_EQ(sources.owner(53), 0U);
}

TEST(FactSources, NamesOfThisMachine) {
    const auto root = host::Root::open();
    ASSERT_TRUE(root);
    FactSources sources(*root);
    EXPECT_EQ(sources.user(0), "root");
    EXPECT_EQ(sources.group(0), "root");
    EXPECT_EQ(sources.user(3999999999U), "3999999999");
    EXPECT_EQ(sources.group(3999999999U), "3999999999");
}

} // namespace
} // namespace affinityd::inventory
