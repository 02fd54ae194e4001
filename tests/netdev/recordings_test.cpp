// SPDX-License-Identifier: Apache-2.0
// Published recordings of whole machines, with what other programs say of their network devices.
#include "host/root.hpp"
#include "netdev/reader.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace affinityd::netdev {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path recordings() {
    for (const char* name : {"AFFINITYD_TOPOLOGIES", "AFFINITYD_TOPOLOGIES_DEFAULT"})
        if (const char* value = std::getenv(name)) return value;
    return "../shared/data/topologies";
}

class Recordings : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "affinityd-recordings-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        top_ = name;
    }
    void TearDown() override { fs::remove_all(top_); }
    fs::path top_;
};

void compare(const json& want, const std::vector<Nic>& nics, const std::string& machine) {
    const auto name = want.at("name").get<std::string>();
    const auto nic = std::ranges::find(nics, name, &Nic::name);
    ASSERT_NE(nic, nics.end()) << machine << " " << name;
    EXPECT_EQ(nic->pci, want.at("pci").get<std::string>()) << machine << " " << name;
    const auto cpus = CpuSet::parse_list(want.at("local_cpus").get<std::string>());
    ASSERT_TRUE(cpus);
    // The expectation knows the CPUs that are there; the kernel's mask may name more (possible ones).
    EXPECT_TRUE(nic->local_cpus.contains(*cpus))
        << machine << " " << name << ": " << nic->local_cpus.to_list();
    if (!want.at("msi_irqs").is_null()) {
        EXPECT_EQ(nic->msi_irqs, want.at("msi_irqs").get<std::vector<unsigned>>()) << machine << " " << name;
    }
    const auto& driver = want.at("pci_driver");
    if (driver.is_string() && nic->virtio.empty()) {
        EXPECT_EQ(nic->driver, driver.get<std::string>()) << machine << " " << name;
    }
    const auto& nodes = want.at("nodes");
    if (nic->node) {
        EXPECT_EQ(json::array({*nic->node}), nodes) << machine << " " << name;
    }
}

TEST_F(Recordings, EveryNetworkDeviceIsFound) {
    std::size_t devices = 0;
    for (const auto& entry : fs::directory_iterator(recordings())) {
        std::ifstream file(entry.path() / "expected.json");
        if (!file) continue;
        const auto expected = json::parse(file);
        if (!expected.contains("net_devices") || expected["net_devices"].empty()) continue;
        const auto machine = entry.path().filename().string();
        const auto root_path = top_ / machine;
        fs::create_directories(root_path);
        const auto command =
            "tar -xzf '" + (entry.path() / "root.tar.gz").string() + "' -C '" + root_path.string() + "'";
        ASSERT_EQ(std::system(command.c_str()), 0) << machine;
        const auto root = host::Root::open(root_path.string());
        ASSERT_TRUE(root);
        const auto nics = read_nics(*root);
        ASSERT_TRUE(nics) << machine;
        for (const auto& want : expected["net_devices"]) {
            compare(want, *nics, machine);
            ++devices;
        }
    }
    std::cout << devices << " network devices\n";
    EXPECT_GE(devices, 10U);
}

} // namespace
} // namespace affinityd::netdev
