// SPDX-License-Identifier: Apache-2.0
// Policies of tests/policies on recorded machines: the CPUs of `cpus` there (worked out by another program
// from the recordings' own expectations), and, in machines.table, findings there.
#include "../policy/corpus.hpp"
#include "host/root.hpp"
#include "machine/machine.hpp"
#include "netdev/reader.hpp"
#include "planner/check.hpp"
#include "planner/slots.hpp"
#include "topology/reader.hpp"

#include <optional>
#include <set>
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

/// "machines: MACHINE: NAME"
std::string machine_of(const Sample& one) {
    const auto begin = one.name.find(": ") + 2;
    return one.name.substr(begin, one.name.find(": ", begin) - begin);
}

/// The machines that the tables name; none, where the build does not tell of tables.
std::set<std::string> machines() {
    std::set<std::string> names;
    if (folder().empty()) return names;
    for (const auto& one : cases_with(&Sample::on_machines)) {
        std::istringstream lines(one.on_machines);
        for (std::string name, cpus; lines >> name >> cpus;)
            names.insert(name);
    }
    for (const auto& one : read_table(folder() / "machines.table"))
        names.insert(machine_of(one));
    return names;
}

class OnMachine : public testing::TestWithParam<std::string> {};

TEST_P(OnMachine, CpusAreAsExpected) {
    const Recording recording(GetParam());
    ASSERT_TRUE(recording.machine());
    const auto& machine = *recording.machine();
    std::size_t compared = 0;
    for (const auto& one : cases_with(&Sample::on_machines)) {
        const auto policy = read_policies(one.documents).set.policies.at(0);
        std::istringstream lines(one.on_machines);
        std::string name;
        std::string expected;
        while (lines >> name >> expected) {
            if (name != GetParam()) continue;
            const auto cpus = planner::evaluate(*policy.placement.cpus, machine.topology,
                                                machine::nic_cpus(machine), machine.topology.online);
            const auto found = planner::check_on_machine({{policy}, {}}, machine);
            // An error, or where the CPUs are only away for now, a warning that none of them is online.
            const bool empty = std::ranges::any_of(found, [](const auto& d) {
                return d.severity == Severity::error || d.message.starts_with("this set holds no online CPU");
            });
            EXPECT_EQ(empty, expected == "none") << one.name << "\n" << said(found);
            const auto online = cpus ? (*cpus & machine.topology.online).to_list() : std::string();
            EXPECT_TRUE(expected == "none" || online == expected) << one.name << ": " << online;
            EXPECT_TRUE(cpus || expected == "none") << one.name;
            ++compared;
        }
    }
    EXPECT_GE(compared, 25U);
}

TEST_P(OnMachine, FindingsAreAsExpected) {
    const Recording recording(GetParam());
    ASSERT_TRUE(recording.machine());
    for (const auto& one : read_table(folder() / "machines.table")) {
        if (machine_of(one) != GetParam()) continue;
        const auto read = read_policies(one.documents);
        EXPECT_TRUE(read.diagnostics.empty()) << said(read.diagnostics);
        auto found = planner::check_on_machine(read.set, *recording.machine());
        add_source_lines(found, one.documents);
        sort_by_place(found);
        EXPECT_EQ(said(found), one.findings) << one.name;
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
