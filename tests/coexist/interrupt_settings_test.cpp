// SPDX-License-Identifier: Apache-2.0
#include "coexist/interrupt_settings.hpp"
#include "host/root.hpp"
#include "support/tree.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::coexist {
namespace {

using Names = std::vector<std::string>;

class InterruptSettingsTest : public testing::Test {
  protected:
    /// "name where" of all that is found.
    Names find(std::size_t most = 32) {
        const auto root = host::Root::open(tree_.path()).value();
        InterruptSettings settings(root, most);
        settings.begin();
        for (slices_ = 1; !settings.step([] { return true; }); ++slices_) {
        }
        Names names;
        for (const auto& writer : settings.found())
            names.push_back(writer.name + " " + writer.where);
        return names;
    }
    test::Tree tree_;
    unsigned slices_ = 0;
};

TEST_F(InterruptSettingsTest, SettingsAndScriptsAreFoundByFileAndLine) {
    tree_.file("etc/systemd/network/10-lan.link", "[Match]\nMACAddress=02:00:00:00:00:01\n\n[Link]\n#"
                                                  "IRQAffinityPolicy=all\nIRQAffinityPolicy=single\n");
    tree_.file("usr/lib/systemd/network/99-default.link", "[Link]\nNamePolicy=keep kernel\n");
    tree_.file("usr/lib/systemd/network/20-x.link", "[Link]\nReceivePacketSteeringCPUMask=all\n");
    tree_.file("etc/systemd/network/20-x.network", "[Link]\nReceivePacketSteeringCPUMask=all\n");
    tree_.file("etc/rc.local", "#!/bin/sh\n# set_irq_affinity was here\n/opt/nic/set_irq_affinity.sh local "
                               "eth0\nset_irq_affinity eth1\n");
    tree_.file("etc/cron.d/irq", "@reboot root echo 1 > /proc/irq/30/smp_affinity\n");
    tree_.file("etc/cron.d/other", "@daily root true\n");
    EXPECT_EQ(find(), (Names{"systemd.link /etc/systemd/network/10-lan.link:6",
                             "systemd.link /usr/lib/systemd/network/20-x.link:2", "script /etc/cron.d/irq:1",
                             "script /etc/rc.local:3"}));
    EXPECT_GE(slices_, 6U) << "one file in each of the smallest slices";
}

TEST_F(InterruptSettingsTest, ManyFilesAreBounded) {
    for (int i = 0; i < 100; ++i)
        tree_.file("etc/cron.d/s" + std::to_string(i), "set_irq_affinity\n");
    EXPECT_EQ(find().size(), 32U);
    tree_.link("etc/rc.local", "/etc/cron.d/s1");
    EXPECT_LE(find(200).size(), 101U);
    for (int i = 0; i < 600; ++i)
        tree_.file("etc/cron.daily/s" + std::to_string(i), "true\n");
    EXPECT_GE(find(1000).size(), 100U);
    EXPECT_LE(slices_, 620U) << "of one folder at most 512";
}

TEST_F(InterruptSettingsTest, FilesOfOtherUsersAndPipesAreNotRead) {
    tree_.file("var/spool/cron/crontabs/eve", "@reboot set_irq_affinity\n");
    tree_.file("var/spool/cron/crontabs/root", "@reboot set_irq_affinity\n");
    ASSERT_EQ(::chown(tree_.path("var/spool/cron/crontabs/eve").c_str(), 65534, 65534), 0);
    ASSERT_EQ(::mkfifo(tree_.path("var/spool/cron/crontabs/fifo").c_str(), 0600), 0);
    EXPECT_EQ(find(), Names{"script /var/spool/cron/crontabs/root:1"});
}

/// Does something as a user who is not root.
template <class Work>
bool as_nobody(Work work) {
    const int child = ::fork();
    if (child == 0) {
        const bool is_nobody = ::setresgid(65534, 65534, 65534) == 0 && ::setresuid(65534, 65534, 65534) == 0;
        ::_exit(is_nobody && work() ? 0 : 1);
    }
    int status = 1;
    return ::waitpid(child, &status, 0) == child && status == 0;
}

TEST_F(InterruptSettingsTest, WhatOthersCanWriteIsNotRead) {
    tree_.file("etc/cron.d/open", "true\n");
    tree_.file("etc/cron.daily/roots", "set_irq_affinity\n");
    tree_.file("etc/cron.daily/away/roots", "set_irq_affinity\n");
    const auto open = tree_.path("etc/cron.d/open");
    const auto daily = tree_.path("etc/cron.daily");
    ASSERT_EQ(::chmod(tree_.path().c_str(), 0755), 0);
    EXPECT_EQ(find(), Names{"script /etc/cron.daily/roots:1"});
    ASSERT_EQ(::chmod(open.c_str(), 0666), 0);
    ASSERT_EQ(::chmod(daily.c_str(), 0777), 0);
    ASSERT_TRUE(as_nobody([&] {
        std::ofstream(open) << "set_irq_affinity\n";
        return ::symlink("away/roots", (daily + "/link").c_str()) == 0 &&
               std::filesystem::file_size(open) > 10;
    })) << "the test needs to be root";
    EXPECT_EQ(find(), Names{});
    ASSERT_EQ(::chmod(open.c_str(), 0644), 0);
    EXPECT_EQ(find(), Names{"script /etc/cron.d/open:1"}) << "root has taken it back";
}

TEST_F(InterruptSettingsTest, AStickyFolderOfRootsIsRead) {
    tree_.file("var/spool/cron/crontabs/root", "@reboot set_irq_affinity\n");
    const auto folder = tree_.path("var/spool/cron/crontabs");
    ASSERT_EQ(::chmod(folder.c_str(), 01730), 0);
    EXPECT_EQ(find(), Names{"script /var/spool/cron/crontabs/root:1"});
    ASSERT_EQ(::chown(folder.c_str(), 65534, 65534), 0);
    EXPECT_EQ(find(), Names{});
}

TEST_F(InterruptSettingsTest, AMachineWithoutSuchFoldersHasNone) {
    tree_.folder("proc");
    EXPECT_TRUE(find().empty());
}

} // namespace
} // namespace affinityd::coexist
