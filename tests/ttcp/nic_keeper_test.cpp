// SPDX-License-Identifier: Apache-2.0
// On a machine that the test makes of files.
#include "affinity-ttcp/testbed/nic_keeper.hpp"
#include "host/root.hpp"

#include <filesystem>
#include <fstream>
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
    [[nodiscard]] host::Root root() const { return host::Root::open(folder_).value(); }
    /// An interface that is down, so that none of this machine is looked for to bring it up.
    static netdev::Nic nic() {
        netdev::Nic nic;
        nic.name = "keeptest";
        nic.driver = "virtio_net";
        nic.device = "virtio9";
        return nic;
    }
    std::string folder_;
};

TEST_F(Keeper, MasksThatDifferAreWrittenAndOthersAreNot) {
    const auto made = root();
    const auto before = std::filesystem::last_write_time(folder_ + "/proc/irq/41/smp_affinity_list");
    put("proc/irq/40/smp_affinity_list", "1");
    put_back(made, {"keeptest", false, {{40, "0-1"}, {41, "0-1"}, {42, "0"}}});
    EXPECT_EQ(text("proc/irq/40/smp_affinity_list").substr(0, 3), "0-1");
    EXPECT_EQ(std::filesystem::last_write_time(folder_ + "/proc/irq/41/smp_affinity_list"), before);
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/proc/irq/42"));
}

/// What is left of a mask that a borrower changed, after it ended in one way or the other.
std::string mask_after(const host::Root& root, const netdev::Nic& nic, bool in_good_order,
                       const std::function<std::string()>& mask, const std::function<void()>& change) {
    const pid_t borrower = ::fork();
    if (borrower == 0) {
        {
            auto keeper = NicKeeper::start(root, {nic});
            if (!keeper) ::_exit(1);
            change();
            if (!in_good_order) ::kill(::getpid(), SIGKILL);
        }
        ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(borrower, &status, 0), borrower);
    EXPECT_EQ(WIFSIGNALED(status), !in_good_order);
    const auto changed = mask();
    for (int i = 0; mask() == changed && i < (in_good_order ? 20 : 500); ++i)
        ::usleep(10'000);
    return mask();
}

TEST_F(Keeper, PutsBackWhatAKilledBorrowerLeft) {
    const auto made = root();
    const auto found = movable_interrupts(made, nic());
    ASSERT_EQ(found.size(), 1U) << "the queue's interrupt, not the device's configuration";
    EXPECT_EQ(found[0].first, 40U);
    const auto mask = [&] { return text("proc/irq/40/smp_affinity_list").substr(0, 3); };
    const auto change = [&] { put("proc/irq/40/smp_affinity_list", "1\n\n"); };
    EXPECT_EQ(mask_after(made, nic(), false, mask, change), "0-1");
    // One that ends in good order has put back what it wants itself.
    EXPECT_EQ(mask_after(made, nic(), true, mask, change), "1\n\n");
}

} // namespace
} // namespace affinityd::ttcp
