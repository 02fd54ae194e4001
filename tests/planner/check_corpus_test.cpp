// SPDX-License-Identifier: Apache-2.0
// Policies on recorded machines: tests/policies/machines/MACHINE holds sets.expected, what the CPU sets of
// the good corpus are there (worked out by another program from the recordings' own expectations), and files
// with what is wrong there.
#include "../policy/corpus.hpp"
#include "host/root.hpp"
#include "machine/machine.hpp"
#include "netdev/reader.hpp"
#include "planner/check.hpp"
#include "planner/slots.hpp"
#include "topology/reader.hpp"

#include <map>
#include <optional>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace {

using namespace corpus;
using namespace affinityd;

fs::path recordings() {
    const char* named = std::getenv("AFFINITYD_TOPOLOGIES");
    const char* standard = std::getenv("AFFINITYD_TOPOLOGIES_DEFAULT");
    return named != nullptr ? named : standard != nullptr ? standard : "";
}

/// A recording, unpacked while this exists.
class Recording {
  public:
    explicit Recording(const std::string& machine) {
        const fs::path memory =
            "/dev/shm"; // thousands of small files: not on a slow disk, where there is a choice
        const auto place = ::access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
        std::string name = (place / "affinityd-check-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) return;
        folder_ = name;
        const auto archive = recordings() / machine / "root.tar.gz";
        if (std::system(("tar -xzf '" + archive.string() + "' -C '" + name + "'").c_str()) != 0) return;
        auto path = folder_;
        if (!fs::exists(path / "sys")) path = fs::directory_iterator(folder_)->path();
        const auto root = host::Root::open(path.string());
        if (!root) return;
        auto topology = topology::read_topology(*root);
        auto nics = netdev::read_nics(*root);
        if (topology && nics) machine_ = machine::Machine{std::move(*topology), std::move(*nics), {}};
    }
    ~Recording() {
        std::error_code code;
        fs::remove_all(folder_, code);
    }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    [[nodiscard]] const std::optional<machine::Machine>& machine() const { return machine_; }

  private:
    fs::path folder_;
    std::optional<machine::Machine> machine_;
};

std::vector<std::string> machines() {
    std::vector<std::string> names;
    std::error_code code; // without recordings there is no such test
    for (const auto& entry : fs::directory_iterator(folder() / "machines", code))
        names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
}

class OnMachine : public testing::TestWithParam<std::string> {};

TEST_P(OnMachine, SetsOfTheGoodCorpusAreAsExpected) {
    const Recording recording(GetParam());
    ASSERT_TRUE(recording.machine());
    const auto& machine = *recording.machine();
    std::map<std::string, Policy> policies;
    for (const auto& one : cases("good"))
        for (auto& policy : read_policies(one.documents).set.policies)
            policies.insert_or_assign(one.name, std::move(policy));
    std::istringstream lines(slurp(folder() / "machines" / GetParam() / "sets.expected"));
    std::string name;
    std::string expected;
    std::size_t compared = 0;
    while (lines >> name >> expected) {
        ASSERT_TRUE(policies.contains(name)) << name;
        const auto& policy = policies.at(name);
        const auto cpus = planner::evaluate(*policy.placement.cpus, machine.topology,
                                            machine::nic_cpus(machine), machine.topology.online);
        const auto found = planner::check_on_machine({{policy}, {}}, machine);
        // An error, or where the CPUs are only away for now, a warning that none of them is online.
        const bool empty = std::ranges::any_of(found, [](const auto& d) {
            return d.severity == Severity::error || d.message.starts_with("this set holds no online CPU");
        });
        EXPECT_EQ(empty, expected == "none") << name << "\n" << said(found);
        const auto online = cpus ? (*cpus & machine.topology.online).to_list() : std::string();
        EXPECT_TRUE(expected == "none" || online == expected) << name << ": " << online;
        EXPECT_TRUE(cpus || expected == "none") << name;
        ++compared;
    }
    EXPECT_GE(compared, 20U);
}

TEST_P(OnMachine, FindingsInItsFilesAreAsExpected) {
    const Recording recording(GetParam());
    ASSERT_TRUE(recording.machine());
    for (const auto& one : cases("machines/" + GetParam())) {
        const auto read = read_policies(one.documents);
        EXPECT_TRUE(read.diagnostics.empty()) << said(read.diagnostics);
        auto found = planner::check_on_machine(read.set, *recording.machine());
        add_source_lines(found, one.documents);
        sort_by_place(found);
        const auto expected = one.expected.string() + ".expected";
        EXPECT_TRUE(fs::exists(expected)) << expected;
        EXPECT_EQ(said(found), slurp(expected)) << one.name;
    }
}

std::string test_name(const testing::TestParamInfo<std::string>& machine) {
    std::string name = machine.param;
    std::ranges::replace(name, '-', '_');
    return name;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OnMachine);
INSTANTIATE_TEST_SUITE_P(Recorded, OnMachine, testing::ValuesIn(machines()), test_name);

} // namespace
