// SPDX-License-Identifier: Apache-2.0
// On a machine that the test makes of files.
#include "affinity-ttcp/testbed/nics.hpp"
#include "host/root.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::ttcp {
namespace {

class Keeper : public ::testing::Test {
  protected:
    Keeper() {
        std::string name = (std::filesystem::temp_directory_path() / "keeper-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
        put("proc/interrupts", "           CPU0       CPU1\n 40:   1   2  PCI-MSI 1-edge  virtio9-input.0\n"
                               " 41:   1   2  PCI-MSI 2-edge  virtio9-config\n");
        put("proc/irq/40/smp_affinity_list", "0-1");
        put("proc/irq/41/smp_affinity_list", "0-1");
        put("sys/class/net/keeptest/ifindex", "9");
    }
    ~Keeper() override { std::filesystem::remove_all(folder_); }
    void put(const std::string& path, const std::string& text) const {
        const auto file = std::filesystem::path(folder_) / path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    [[nodiscard]] std::string text(const std::string& path) const {
        std::stringstream all;
        all << std::ifstream(std::filesystem::path(folder_) / path).rdbuf();
        return all.str();
    }
    [[nodiscard]] std::string mask() const { return text("proc/irq/40/smp_affinity_list").substr(0, 3); }
    static bool is_root() { return ::geteuid() == 0; }
    static constexpr int refused = 77; ///< only root may change its root folder
    /// How a process ends whose root folder is this one: only that of "/" is ever written.
    [[nodiscard]] int inside(const std::function<int(const host::Root&)>& work) const {
        const pid_t child = ::fork();
        if (child == 0) {
            if (::chroot(folder_.c_str()) != 0 || ::chdir("/") != 0) ::_exit(refused);
            const auto root = host::Root::open();
            ::_exit(root ? work(*root) : 1);
        }
        int status = 0;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        return status;
    }
    /// An interface that is down, so that none of this machine is looked for to bring it up.
    static netdev::Nic nic() {
        netdev::Nic nic;
        nic.name = "keeptest";
        nic.driver = "virtio_net";
        nic.virtio = "virtio9";
        return nic;
    }
    std::string folder_;
};

TEST_F(Keeper, MasksThatDifferAreWrittenAndOthersAreNot) {
    const auto same = std::filesystem::last_write_time(folder_ + "/proc/irq/41/smp_affinity_list");
    put("proc/irq/40/smp_affinity_list", "1\n\n");
    const int status = inside([](const host::Root& root) {
        put_back(root, {"keeptest", false, {{40, "0-1"}, {41, "0-1"}, {42, "0"}}});
        return 0;
    });
    EXPECT_EQ(WEXITSTATUS(status), is_root() ? 0 : refused);
    EXPECT_EQ(mask(), is_root() ? "0-1" : "1\n\n");
    EXPECT_EQ(std::filesystem::last_write_time(folder_ + "/proc/irq/41/smp_affinity_list"), same);
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/proc/irq/42"));
}

TEST_F(Keeper, KnowsTheInterruptsOfQueues) {
    const int status = inside([](const host::Root& root) {
        const auto found = movable_interrupts(root, nic());
        return found.size() == 1 && found[0].first == 40 && found[0].second == "0-1" ? 0 : 1;
    });
    EXPECT_EQ(WEXITSTATUS(status), is_root() ? 0 : refused);
}

TEST_F(Keeper, PutsBackWhatABorrowerLeft) {
    for (const bool is_killed : {true, false}) {
        const int status = inside([&](const host::Root& root) {
            auto keeper = NicKeeper::start(root, {nic()}, {});
            if (!keeper || root.proc().write("irq/40/smp_affinity_list", "1\n\n") != 0) return 1;
            if (is_killed) ::kill(::getpid(), SIGKILL);
            return 0;
        });
        EXPECT_EQ(WIFSIGNALED(status), is_root() && is_killed);
        for (int i = 0; mask() != "0-1" && is_killed && i < 1000; ++i)
            ::usleep(10'000);
        EXPECT_EQ(mask(), "0-1") << "in good order, the borrower waits for it";
    }
}

} // namespace
} // namespace affinityd::ttcp
