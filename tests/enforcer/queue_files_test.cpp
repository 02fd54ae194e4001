// SPDX-License-Identifier: Apache-2.0
#include "host/root.hpp"
#include "machine/queue_files.hpp"
#include "support/tree.hpp"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace affinityd::machine {
namespace {

class QueueFilesTest : public testing::Test {
  protected:
    test::Tree tree_;
    [[nodiscard]] host::Root root() const {
        tree_.folder("proc");
        tree_.folder("sys");
        return *host::Root::open(tree_.path());
    }
};

TEST_F(QueueFilesTest, ANumberIsFoundAgainByHandlerAndDevice) {
    tree_.folder("proc/irq/40/eth0-TxRx-0");
    tree_.folder("proc/irq/41/eth0-TxRx-1");
    tree_.folder("proc/irq/50/net1-TxRx-0");
    tree_.folder("proc/irq/60/net1-TxRx-0"); // another device's, with the same name
    tree_.file("sys/devices/a/msi_irqs/40", "msix\n");
    tree_.file("sys/devices/a/msi_irqs/41", "msix\n");
    tree_.file("sys/devices/b/msi_irqs/60", "msix\n");
    tree_.folder("sys/devices/b/virtio1");
    const auto root = this->root();
    EXPECT_EQ(*find_irq(root, {"devices/a", "eth0-TxRx-0", 0, 40}), 40U);
    EXPECT_EQ(*find_irq(root, {"devices/a", "eth0-TxRx-1", 0, 40}), 41U)
        << "the number was given to another queue";
    EXPECT_EQ(*find_irq(root, {"devices/b", "net1-TxRx-0", 0, 50}), 60U) << "50 belongs to another device";
    EXPECT_EQ(*find_irq(root, {"devices/b/virtio1", "net1-TxRx-0", 0, 50}), 60U)
        << "vectors hang on the parent";
    EXPECT_EQ(*find_irq(root, {"devices/a", "gone", 0, 40}), std::nullopt);
    EXPECT_EQ(*find_irq(root, {"", "eth0-TxRx-1", 0, 7}), 41U);
    EXPECT_EQ(*find_irq(root, {"devices/unplugged", "eth0-TxRx-1", 0, 41}), std::nullopt)
        << "another device has the label now";
}

TEST_F(QueueFilesTest, ALineThatDevicesShareIsFoundByItsNumber) {
    tree_.folder("proc/irq/20/lan1");
    tree_.file("sys/kernel/irq/20/chip_name", "IO-APIC\n");
    tree_.folder("proc/irq/21");
    tree_.file("sys/kernel/irq/21/chip_name", "PCI-MSIX-0000:00:03.0\n");
    tree_.folder("proc/irq/22"); // a kernel that does not tell
    const auto root = this->root();
    const auto find = [&](unsigned number) {
        return *find_irq(root, {"devices/unplugged", "lan0", 0, number, true});
    };
    EXPECT_EQ(find(20), 20U);
    EXPECT_EQ(find(21), std::nullopt) << "given out anew, as a vector";
    EXPECT_EQ(find(22), 22U);
    EXPECT_EQ(find(23), std::nullopt);
}

TEST_F(QueueFilesTest, EqualLabelsAreToldApartByTheOrderOfTheirNumbers) {
    // Numbers are ordered as numbers: "100" comes after "37".
    for (const char* number : {"37", "100", "38"})
        tree_.folder(std::string("proc/irq/") + number + "/eth0");
    tree_.folder("proc/irq/5/other");
    tree_.file("sys/devices/platform/end0/uevent", "");
    const auto root = this->root();
    const auto find = [&](unsigned ordinal, unsigned irq) {
        return *find_irq(root, {"devices/platform/end0", "eth0", ordinal, irq});
    };
    EXPECT_EQ(find(0, 37), 37U);
    EXPECT_EQ(find(1, 38), 38U);
    EXPECT_EQ(find(2, 100), 100U);
    EXPECT_EQ(find(3, 100), std::nullopt);
    EXPECT_EQ(find(0, 38), 37U) << "its number when it was read is the second's now";
    EXPECT_EQ(find(1, 4000), 38U);
}

TEST_F(QueueFilesTest, ADeviceWithoutVectorsHasItsOneLine) {
    tree_.folder("proc/irq/10/eth0");
    tree_.folder("proc/irq/11/eth0"); // of a device whose interface had the name before
    tree_.file("sys/devices/pci/a/irq", "11\n");
    tree_.file("sys/devices/pci/b/irq", "0\n");         // none
    tree_.file("sys/devices/pci/msi_irqs/24", "msi\n"); // of the PCIe port above both
    tree_.folder("proc/irq/24/pcieport");
    const auto root = this->root();
    EXPECT_EQ(*find_irq(root, {"devices/pci/a", "eth0", 0, 10}), 11U);
    EXPECT_EQ(*find_irq(root, {"devices/pci/b", "eth0", 0, 10}), std::nullopt);
}

TEST_F(QueueFilesTest, ALineOfTheDeviceIsFoundByItsNumberWhileNothingHandlesIt) {
    tree_.file("sys/devices/a/msi_irqs/40", "msix\n");
    tree_.folder("proc/irq/40");
    tree_.file("sys/kernel/irq/40/actions", "\n");
    tree_.folder("proc/irq/41");
    tree_.file("sys/kernel/irq/41/actions", "\n");
    const auto root = this->root();
    EXPECT_EQ(*find_irq(root, {"devices/a", "eth0-TxRx-0", 0, 40}), 40U);
    EXPECT_EQ(*find_irq(root, {"devices/a", "eth0-TxRx-0", 0, 41}), std::nullopt) << "another device's";
    EXPECT_EQ(*find_irq(root, {"", "eth0-TxRx-0", 0, 40}), std::nullopt) << "the device is not known";
    tree_.file("sys/kernel/irq/40/actions", "other\n");
    EXPECT_EQ(*find_irq(root, {"devices/a", "eth0-TxRx-0", 0, 40}), std::nullopt) << "another handler has it";
}

TEST_F(QueueFilesTest, ALineOfTheDeviceIsFoundUnderTheNewNameOfItsInterface) {
    struct Case {
        const char* label;
        const char* now;
        bool is_found;
    };
    const std::vector<Case> cases{{"eth0-TxRx-0", "lan0-TxRx-0", true},
                                  {"eth0", "lan0", true},
                                  {"i40e-eth0-TxRx-0", "i40e-lan0-TxRx-0", true},
                                  {"eth0-TxRx-0", "lan0-TxRx-1", false},
                                  {"eth0-TxRx-0", "wan0-TxRx-0", false}, // not its interface's name
                                  {"-TxRx-0", "lan0-TxRx-0", false},
                                  {"eth0", "vfio-msix[0](0000:00:03.0)", false}};
    tree_.file("sys/devices/a/msi_irqs/40", "msix\n");
    tree_.folder("sys/devices/a/net/lan0");
    const auto root = this->root();
    for (const auto& [label, now, is_found] : cases) {
        const auto folder = std::string("proc/irq/40/") + now;
        tree_.folder(folder);
        tree_.file("sys/kernel/irq/40/actions", std::string(now) + "\n");
        EXPECT_EQ(find_irq(root, {"devices/a", label, 0, 40})->has_value(), is_found) << label << ' ' << now;
        EXPECT_EQ(*find_irq(root, {"devices/a", label, 0, 41}), std::nullopt) << "not the device's";
        std::filesystem::remove(tree_.path(folder));
    }
}

TEST_F(QueueFilesTest, AVirtualInterfaceIsFoundAgainByItsIndex) {
    tree_.file("sys/class/net/vx/ifindex", "7\n");
    tree_.file("sys/class/net/vb/ifindex", "9\n");
    const auto root = this->root();
    const auto find = [&](const char* name, unsigned ifindex) {
        const auto file = *queue_file(root, SteeringMask{name, Direction::tx, 0, name, ifindex});
        EXPECT_TRUE(file);
        return file->substr(std::string("class/net/").size(), 2);
    };
    EXPECT_EQ(find("va", 7), "vx");
    EXPECT_EQ(find("vb", 7), "vx") << "another one has the name now";
    EXPECT_EQ(find("vb", 9), "vb");
    EXPECT_EQ(*queue_file(root, SteeringMask{"vb", Direction::tx, 0, "vb", 8}), std::nullopt)
        << "another one has the name, and it is gone";
    EXPECT_EQ(find("vc", 8), "vc") << "it is gone";
    EXPECT_EQ(find("vb", 0), "vb") << "an old record";
    EXPECT_EQ(*queue_file(root, FlowTable{"va", 3, "va", 7}), "class/net/vx/queues/rx-3/rps_flow_cnt");
}

TEST_F(QueueFilesTest, AHandlerWithASlashInItsNameIsFoundInSysfs) {
    tree_.folder("proc/irq/40");
    tree_.folder("proc/irq/41");
    tree_.file("sys/kernel/irq/40/actions", "PCIe PME,eth0/rx\n");
    tree_.file("sys/kernel/irq/41/actions", "eth0/tx\n");
    tree_.file("sys/devices/a/msi_irqs/40", "msix\n");
    tree_.file("sys/devices/a/msi_irqs/41", "msix\n");
    const auto root = this->root();
    EXPECT_EQ(*find_irq(root, {"devices/a", "eth0/rx", 0, 41}), 40U);
    EXPECT_EQ(*find_irq(root, {"devices/a", "eth0/tx", 0, 40}), 41U);
    EXPECT_EQ(*find_irq(root, {"devices/a", "eth0/t", 0, 40}), std::nullopt);
}

TEST_F(QueueFilesTest, AnInterfaceIsFoundAgainByItsDevice) {
    tree_.folder("sys/devices/a/net/new0");
    tree_.folder("sys/devices/dual/net/p0");
    tree_.folder("sys/devices/dual/net/p1");
    const auto root = this->root();
    EXPECT_EQ(*queue_file(root, SteeringMask{"devices/a", Direction::tx, 1, "old0"}),
              "class/net/new0/queues/tx-1/xps_cpus");
    EXPECT_EQ(*queue_file(root, FlowTable{"devices/a", 3, "old0"}),
              "class/net/new0/queues/rx-3/rps_flow_cnt");
    EXPECT_EQ(*queue_file(root, SteeringMask{"veth0", Direction::rx, 0, "veth0"}),
              "class/net/veth0/queues/rx-0/rps_cpus");
    EXPECT_EQ(*queue_file(root, SteeringMask{"devices/dual", Direction::rx, 0, "p1"}),
              "class/net/p1/queues/rx-0/rps_cpus");
    EXPECT_EQ(*queue_file(root, SteeringMask{"devices/dual", Direction::rx, 0, "old1"}), std::nullopt)
        << "it may be either";
    EXPECT_EQ(*queue_file(root, SteeringMask{"devices/unplugged", Direction::rx, 0, "new0"}), std::nullopt)
        << "another device's interface has the name now";
}

TEST_F(QueueFilesTest, AnInterfaceOfADeviceThatHasSeveralIsFoundByItsIndex) {
    tree_.file("sys/devices/dual/net/p0/ifindex", "40\n");
    tree_.file("sys/devices/dual/net/p1/ifindex", "41\n");
    tree_.file("sys/devices/a/net/new0/ifindex", "9\n");
    const auto root = this->root();
    const auto file = [&](const std::string& device, const std::string& nic, unsigned ifindex, bool is_port) {
        return *queue_file(root, SteeringMask{device, Direction::rx, 0, nic, ifindex, is_port});
    };
    EXPECT_EQ(file("devices/dual", "p1", 40, true), "class/net/p0/queues/rx-0/rps_cpus");
    EXPECT_EQ(file("devices/dual", "p0", 41, false), "class/net/p1/queues/rx-0/rps_cpus");
    EXPECT_EQ(file("devices/dual", "p0", 42, true), std::nullopt) << "another one has its name";
    EXPECT_EQ(file("devices/a", "old0", 8, true), std::nullopt) << "the other port";
    EXPECT_EQ(file("devices/a", "old0", 8, false), "class/net/new0/queues/rx-0/rps_cpus")
        << "it was elsewhere, and has another index";
}

TEST_F(QueueFilesTest, SettingsAreReadAsTheKernelWritesThem) {
    tree_.folder("proc/irq/40/eth0-TxRx-0");
    tree_.file("proc/irq/40/smp_affinity_list", "0-3,8\n");
    tree_.file("sys/devices/a/msi_irqs/40", "msix\n");
    tree_.folder("sys/devices/a/net/eth0");
    const std::string queues = "sys/class/net/eth0/queues/";
    tree_.file(queues + "rx-0/rps_cpus", "00000000,00000103\n");
    tree_.file(queues + "rx-0/rps_flow_cnt", "32768\n");
    tree_.file(queues + "rx-1/rps_flow_cnt", "nonsense\n");
    tree_.file(queues + "tx-0/xps_cpus", "0\n");
    tree_.file("proc/sys/net/core/rps_sock_flow_entries", "4096\n");
    const auto root = this->root();
    EXPECT_EQ(*read_setting(root, IrqMask{"devices/a", "eth0-TxRx-0", 0, 40}),
              Setting(CpuSet{0, 1, 2, 3, 8}));
    EXPECT_EQ(*read_setting(root, IrqMask{"devices/a", "eth0-TxRx-1", 0, 41}), std::nullopt);
    EXPECT_EQ(*read_setting(root, SteeringMask{"devices/a", Direction::rx, 0, "eth0"}),
              Setting(CpuSet{0, 1, 8}));
    EXPECT_EQ(*read_setting(root, SteeringMask{"devices/a", Direction::tx, 0, "eth0"}), Setting(CpuSet{}))
        << "off";
    EXPECT_EQ(*read_setting(root, SteeringMask{"devices/a", Direction::tx, 1, "eth0"}), std::nullopt);
    EXPECT_EQ(*read_setting(root, FlowTable{"devices/a", 0, "eth0"}), Setting(FlowCount{32768}));
    EXPECT_EQ(*read_setting(root, FlowTable{"", 0, "machine"}), Setting(FlowCount{4096}));
    EXPECT_FALSE(read_setting(root, FlowTable{"devices/a", 1, "eth0"})) << "there, and not understood";
}

TEST_F(QueueFilesTest, WithoutDescriptorsNothingIsTakenForGone) {
    tree_.folder("proc/irq/40/eth0-TxRx-0");
    tree_.file("proc/irq/40/smp_affinity_list", "0-3\n");
    tree_.file("sys/devices/a/msi_irqs/40", "msix\n");
    tree_.folder("sys/devices/a/net/eth0");
    tree_.file("sys/class/net/eth0/queues/rx-0/rps_cpus", "1\n");
    const auto root = this->root();
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none{3, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    const auto irq = read_setting(root, IrqMask{"devices/a", "eth0-TxRx-0", 0, 40});
    const auto steering = read_setting(root, SteeringMask{"devices/a", Direction::rx, 0, "eth0"});
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_FALSE(irq);
    EXPECT_FALSE(steering);
    EXPECT_TRUE(*read_setting(root, IrqMask{"devices/a", "eth0-TxRx-0", 0, 40}));
}

} // namespace
} // namespace affinityd::machine
