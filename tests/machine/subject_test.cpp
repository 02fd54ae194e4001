// SPDX-License-Identifier: Apache-2.0
#include "machine/subject.hpp"

#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

namespace affinityd::machine {
namespace {

std::size_t hash_of(const Subject& subject) { return std::hash<Subject>{}(subject); }

TEST(Subject, SubjectsThatDifferOnlyInWhatIsNoIdentityAreEqual) {
    const std::pair<Subject, Subject> pairs[] = {
        {TaskMask{{12, 700}, 10, "nginx"}, TaskMask{{12, 700}, 0, "renamed"}},
        {IrqMask{"devices/a", "eth0-rx", 1, 40}, IrqMask{"devices/a", "eth0-rx", 1, 91}},
        {IrqMask{"devices/a", "lan0", 0, 20, true}, IrqMask{"devices/b", "lan1", 0, 20, true}},
        {SteeringMask{"devices/a", Direction::tx, 3, "eth0"},
         SteeringMask{"devices/a", Direction::tx, 3, "wan"}},
        {FlowTable{"devices/a", 3, "eth0"}, FlowTable{"devices/a", 3, "wan"}},
        {UnitCpuset{"nginx.service"}, UnitCpuset{"nginx.service"}},
    };
    for (const auto& [a, b] : pairs) {
        EXPECT_EQ(a, b) << to_string(a) << " and " << to_string(b);
        EXPECT_EQ(hash_of(a), hash_of(b)) << to_string(a) << " and " << to_string(b);
    }
}

TEST(Subject, SubjectsThatDifferInAnyPartOfTheirIdentityAreDifferent) {
    const std::vector<Subject> all{
        TaskMask{{12, 700}, 10, "nginx"},
        TaskMask{{12, 701}, 10, "nginx"}, // the number was used again
        TaskMask{{13, 700}, 10, "nginx"},
        IrqMask{"devices/a", "eth0", 0, 40},
        IrqMask{"devices/a", "eth0", 1, 40}, // bcmgenet has two of this label
        IrqMask{"devices/a", "eth1", 0, 40},
        IrqMask{"devices/b", "eth0", 0, 40},
        IrqMask{"devices/a", "eth0", 0, 40, true}, // a line that others may be on
        IrqMask{"devices/a", "eth0", 0, 41, true},
        SteeringMask{"devices/a", Direction::rx, 0, "eth0"},
        SteeringMask{"devices/a", Direction::tx, 0, "eth0"},
        SteeringMask{"devices/a", Direction::rx, 1, "eth0"},
        SteeringMask{"devices/b", Direction::rx, 0, "eth0"},
        FlowTable{"devices/a", 0, "eth0"}, // its fields are those of a steering map
        FlowTable{"devices/a", 1, "eth0"},
        FlowTable{"devices/a", 1, "eth0", 7, true},
        FlowTable{"devices/a", 1, "eth0", 8, true},
        SteeringMask{"devices/a", Direction::rx, 1, "eth0", 7, true},
        SteeringMask{"devices/a", Direction::rx, 1, "eth0", 8, true},
        FlowTable{"devices/b", 0, "eth0"},
        FlowTable{},
        UnitCpuset{"nginx.service"},
        UnitCpuset{"devices/a"},
        UnitCpuset{""},
        KernelMask{KernelMask::Of::interrupts},
        KernelMask{KernelMask::Of::work},
    };
    std::unordered_set<Subject> subjects;
    std::unordered_set<std::size_t> hashes;
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = i + 1; j < all.size(); ++j)
            EXPECT_NE(all[i], all[j]) << to_string(all[i]) << " and " << to_string(all[j]);
        subjects.insert(all[i]);
        hashes.insert(hash_of(all[i]));
    }
    EXPECT_EQ(subjects.size(), all.size());
    EXPECT_EQ(hashes.size(), all.size()) << "a hash that leaves a part out";
}

TEST(Subject, TextsNameTheSubjectForPeople) {
    EXPECT_EQ(to_string(TaskMask{{12, 700}, 10, "nginx"}), "task 12 (nginx)");
    EXPECT_EQ(to_string(IrqMask{"d", "eth0-TxRx-3", 0, 45}), "IRQ 45 (eth0-TxRx-3)");
    EXPECT_EQ(to_string(SteeringMask{"d", Direction::tx, 3, "eth0"}), "eth0 tx-3");
    EXPECT_EQ(to_string(FlowTable{"d", 7, "eth0"}), "eth0 rx-7-flows");
    EXPECT_EQ(to_string(FlowTable{}), "machine flow-entries");
    EXPECT_EQ(to_string(UnitCpuset{"nginx.service"}), "AllowedCPUs of nginx.service");
    EXPECT_EQ(to_string(KernelMask{KernelMask::Of::interrupts}), "new interrupts");
    EXPECT_EQ(to_string(KernelMask{KernelMask::Of::work}), "unbound workqueues");
}

TEST(Subject, AllButTasksAndUnitsAreQueues) {
    EXPECT_FALSE(is_queue(TaskMask{}));
    EXPECT_TRUE(is_queue(IrqMask{}));
    EXPECT_TRUE(is_queue(SteeringMask{}));
    EXPECT_TRUE(is_queue(FlowTable{}));
    EXPECT_FALSE(is_queue(UnitCpuset{}));
    EXPECT_TRUE(is_queue(KernelMask{}));
}

TEST(Setting, CpusAndCountsAreTwoThings) {
    const Setting cpus = CpuSet{15};
    const Setting count = FlowCount{32768}; // as a mask this is CPU 15
    EXPECT_NE(cpus, count);
    EXPECT_EQ(cpus.to_string(), "15");
    EXPECT_EQ(count.to_string(), "32768");
    EXPECT_TRUE(cpus.is_cpus());
    EXPECT_FALSE(count.is_cpus());
    EXPECT_TRUE(count.cpus().empty());
    EXPECT_EQ(cpus.count(), FlowCount{0});
}

TEST(Setting, OffIsAnEmptySetOrZero) {
    EXPECT_EQ(Setting(), Setting(CpuSet{}));
    EXPECT_NE(Setting(), Setting(FlowCount{}));
    EXPECT_EQ(Setting().to_string(), "");
    EXPECT_EQ(Setting(FlowCount{}).to_string(), "0");
    EXPECT_EQ(Setting(FlowCount{~0U}).to_string(), "4294967295");
}

} // namespace
} // namespace affinityd::machine
