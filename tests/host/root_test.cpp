// SPDX-License-Identifier: Apache-2.0
#include "../support/no_descriptors_left.hpp"
#include "../support/tree.hpp"
#include "host/root.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stop_token>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::host {
namespace {

using test::Tree;

Root open_root(const Tree& tree) {
    auto root = Root::open(tree.path());
    EXPECT_TRUE(root) << root.error().to_string();
    return std::move(*root);
}

TEST(Root, KnowsTheLiveMachine) {
    const auto live = Root::open("/");
    ASSERT_TRUE(live);
    EXPECT_TRUE(live->is_live());
    const auto by_detour = Root::open("/usr/..");
    ASSERT_TRUE(by_detour);
    EXPECT_TRUE(by_detour->is_live());
    const Tree tree;
    EXPECT_FALSE(open_root(tree).is_live());
}

TEST(Root, RenamesElsewhereKeepNoFileOfARecordingFromBeingRead) {
    const Tree tree, elsewhere;
    tree.file("sys/devices/eth0/mtu", "1500\n");
    tree.file("sys/class/net/lo/mtu", "65536\n");
    elsewhere.file("a", "");
    std::jthread renaming([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            std::filesystem::rename(elsewhere.path("a"), elsewhere.path("b"));
            std::filesystem::rename(elsewhere.path("b"), elsewhere.path("a"));
        }
    });
    const auto root = open_root(tree);
    unsigned missed = 0;
    for (int i = 0; i < 20'000; ++i)
        missed += root.sys().number("class/net/../../devices/eth0/mtu") == 1500 ? 0 : 1;
    EXPECT_EQ(missed, 0U);
}

TEST(Root, AMissingFolderIsAnError) {
    const auto root = Root::open("/nonexistent/recording");
    ASSERT_FALSE(root);
    EXPECT_EQ(root.error().code, ENOENT);
    EXPECT_EQ(root.error().subject, "/nonexistent/recording");
}

TEST(Root, ARecordingMayLackTrees) {
    const Tree tree;
    tree.file("proc/interrupts", "x\n");
    const Root root = open_root(tree);
    EXPECT_EQ(root.proc().text("interrupts"), "x");
    EXPECT_FALSE(root.sys().text("devices/system/cpu/online"));
    EXPECT_TRUE(root.sys().list("")->empty());
    EXPECT_FALSE(root.sys().exists("devices"));
    EXPECT_FALSE(root.sys().dir("devices"));
    EXPECT_NE(root.sys().write("devices", "x"), 0);
}

TEST(Dir, TypedReads) {
    const Tree tree;
    tree.file("sys/number", " -1\n");
    tree.file("sys/word", "abc\n");
    tree.file("sys/list", "0-3,2000\n");
    tree.file("sys/mask", "ff,00000000\n");
    tree.file("sys/empty", "\n");
    const Root root = open_root(tree);
    EXPECT_EQ(root.sys().number("number"), -1);
    EXPECT_FALSE(root.sys().number("word"));
    EXPECT_FALSE(root.sys().number("missing"));
    EXPECT_EQ(root.sys().cpu_list("list"), (CpuSet{0, 1, 2, 3, 2000}));
    EXPECT_FALSE(root.sys().cpu_list("word"));
    EXPECT_EQ(root.sys().cpu_list("empty"), CpuSet{});
    EXPECT_EQ(root.sys().cpu_mask("mask"), CpuSet::range(32, 39));
    EXPECT_EQ(root.sys().list("").value(),
              (std::vector<std::string>{"empty", "list", "mask", "number", "word"}));
    EXPECT_TRUE(root.sys().list("list")->empty());
    EXPECT_TRUE(root.sys().exists("list"));
    EXPECT_FALSE(root.sys().exists("missing"));
}

TEST(Dir, AbsentIsNothingAndUnreadableAnError) {
    const Tree tree;
    tree.folder("sys/folder");
    const Root root = open_root(tree);
    const auto absent = root.sys().read("no/such");
    ASSERT_TRUE(absent);
    EXPECT_FALSE(*absent);
    const auto folder = root.sys().read("folder");
    ASSERT_FALSE(folder);
    EXPECT_EQ(folder.error().code, EISDIR);
}

TEST(Dir, ReadsStopAtTheLimit) {
    const Tree tree;
    tree.file("sys/long", std::string(100000, 'x'));
    const auto text = open_root(tree).sys().read("long", 1000);
    ASSERT_TRUE(text && *text);
    EXPECT_EQ((*text)->size(), 1000U);
}

// A recording comes from strangers: no link in it may make us read this machine's files.
TEST(Dir, NoLinkLeadsOutOfARecording) {
    const Tree tree;
    tree.file("secret", "outside");
    tree.folder("sys/a");
    tree.file("sys/inside", "inside");
    tree.link("sys/absolute", "/etc/passwd");
    tree.link("sys/up", "../secret");
    tree.link("sys/a/far", "../../../../../../../../etc/passwd");
    tree.link("sys/folder", "/etc");
    tree.link("sys/absolute_inside", "/inside");
    tree.link("sys/loop", "loop");
    const Root root = open_root(tree);
    for (const char* path :
         {"absolute", "up", "a/far", "folder/passwd", "../secret", "/etc/passwd", "a/../../secret", "loop"}) {
        EXPECT_FALSE(root.sys().text(path)) << path;
        EXPECT_FALSE(root.sys().exists(path)) << path;
        EXPECT_FALSE(root.sys().resolve(path)) << path;
    }
    EXPECT_TRUE(root.sys().list("folder")->empty());
    EXPECT_FALSE(root.sys().dir("folder"));
    EXPECT_EQ(root.sys().text("absolute_inside"), "inside")
        << "an absolute link counts from the recording's own top";
    EXPECT_EQ(root.sys().link("absolute"), "/etc/passwd") << "the text of a link may be looked at";
}

TEST(Dir, AFolderOpenedInARecordingIsConfinedToo) {
    const Tree tree;
    tree.file("sys/outside", "outside");
    tree.link("sys/net/eth0", "../outside");
    tree.file("sys/net/name", "x");
    const auto net = open_root(tree).sys().dir("net");
    ASSERT_TRUE(net);
    EXPECT_EQ(net->text("name"), "x");
    EXPECT_FALSE(net->text("eth0"));
    EXPECT_FALSE(net->text("../outside"));
}

TEST(Dir, TreesThatAreLinksStayInTheRecording) {
    const Tree tree;
    tree.link("sys", "/etc");
    tree.link("proc", "..");
    const auto root = Root::open(tree.path());
    if (!root) return; // refusing the whole recording is as good
    EXPECT_FALSE(root->sys().text("passwd"));
    EXPECT_FALSE(root->sys().exists("passwd"));
    EXPECT_FALSE(root->proc().exists("usr")) << ".. above the recording";
}

TEST(Dir, ResolveFollowsLinksInside) {
    const Tree tree;
    tree.file("sys/devices/pci0/net/eth0/mtu", "1500");
    tree.link("sys/class/net/eth0", "../../devices/pci0/net/eth0");
    const Root root = open_root(tree);
    EXPECT_EQ(root.sys().resolve("class/net/eth0"), "devices/pci0/net/eth0");
    EXPECT_EQ(root.sys().text("class/net/eth0/mtu"), "1500");
    EXPECT_EQ(root.sys().link("class/net/eth0"), "../../devices/pci0/net/eth0");
    EXPECT_FALSE(root.sys().link("devices"));
    EXPECT_FALSE(root.sys().resolve("class/net/eth9"));
}

TEST(Dir, ARecordingIsNeverWritten) {
    const Tree tree;
    tree.file("proc/irq/5/smp_affinity_list", "0-3");
    const Root root = open_root(tree);
    EXPECT_EQ(root.proc().write("irq/5/smp_affinity_list", "1"), EROFS);
    EXPECT_EQ(root.proc().write("irq/6/smp_affinity_list", "1"), EROFS);
    const auto folder = root.proc().dir("irq/5");
    ASSERT_TRUE(folder);
    EXPECT_EQ(folder->write("smp_affinity_list", "1"), EROFS);
    EXPECT_EQ(root.proc().text("irq/5/smp_affinity_list"), "0-3");
}

// A pipe in a recording must not stop us for ever (the test itself would hang).
TEST(Dir, APipeInARecordingDoesNotBlock) {
    const Tree tree;
    tree.folder("proc/1");
    ASSERT_EQ(::mkfifo(tree.path("proc/1/stat").c_str(), 0600), 0);
    const Root root = open_root(tree);
    EXPECT_EQ(root.proc().text("1/stat").value_or(""), "");
    EXPECT_FALSE(root.proc().number("1/stat"));
}

TEST(Dir, LiveWritesReportTheKernelsAnswer) {
    const Tree tree;
    tree.file("attribute", "old");
    const auto dir = Dir::open(AT_FDCWD, tree.path(), false);
    ASSERT_TRUE(dir);
    EXPECT_EQ(dir->write("attribute", "new"), 0);
    EXPECT_EQ(dir->text("attribute"), "new");
    EXPECT_EQ(dir->write("missing", "x"), ENOENT);
    EXPECT_FALSE(dir->exists("missing")) << "a kernel file is never created";
    EXPECT_EQ(dir->write("", "x"), EISDIR);
}

TEST(Dir, ListThatCannotBeReadIsAnErrorAndAbsentFolderIsEmpty) {
    const test::Tree tree;
    tree.file("sys/full/a", "");
    tree.folder("proc");
    const auto root = Root::open(tree.path());
    ASSERT_TRUE(root);
    EXPECT_EQ(root->sys().list("full").value(), std::vector<std::string>{"a"});
    EXPECT_TRUE(root->sys().list("missing").value().empty());
    const test::NoDescriptorsLeft none;
    const auto list = root->sys().list("full");
    ASSERT_FALSE(list);
    EXPECT_EQ(list.error().code, EMFILE);
    EXPECT_EQ(list.error().subject, "full");
}

TEST(Dir, StampChangesWithTheFile) {
    const test::Tree tree;
    tree.file("etc/passwd", "a");
    const auto root = Root::open(tree.path());
    ASSERT_TRUE(root);
    const auto before = root->etc().stamp("passwd");
    ASSERT_TRUE(before);
    EXPECT_EQ(root->etc().stamp("passwd"), before);
    tree.file("etc/passwd", "ab");
    EXPECT_NE(root->etc().stamp("passwd"), before);
    EXPECT_FALSE(root->etc().stamp("missing"));
}

} // namespace
} // namespace affinityd::host
