// SPDX-License-Identifier: Apache-2.0
// In which order, and in which slices, things are put back.
#include "app/restorer.hpp"
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using machine::Channels;
using machine::QueueCount;

/// Two interfaces whose numbers of queues we have changed, and an interrupt of one of them.
class RestorerTest : public testing::Test {
  protected:
    RestorerTest()
        : root_(*host::Root::open(machine_.path())), journal_(*state::Journal::open("")), enforcer_(machine_),
          executor_(journal_, enforcer_), sources_(root_) {
        for (const auto* count : {&eth0_, &eth1_}) {
            enforcer_.channels[count->nic] = Channels{4, 0, 0};
            record(*count, Channels{8, 0, 0}, Channels{4, 0, 0});
        }
        machine_.set_irq(30, "2");
        record(irq_, all_, CpuSet{2});
    }
    void record(const machine::Subject& subject, const machine::Setting& from, const machine::Setting& to) {
        EXPECT_TRUE(journal_.remember(subject, from, to, "p"));
        EXPECT_TRUE(journal_.confirm(subject, to));
    }
    [[nodiscard]] Restorer restorer(bool with_kept = false) {
        return {{journal_, executor_, sources_, log_.log()},
                all_,
                [](const auto&) { return Restorer::Choice::restore; },
                [this](const auto&) { is_done_ = true; },
                with_kept};
    }
    static bool out_of_time() { return true; }

    const QueueCount eth0_{"devices/a", "eth0", 2, false, 70}, eth1_{"devices/b", "eth1", 3, false, 71};
    const machine::IrqMask irq_{"devices/pci0000:00/0000:00:03.0", "eth0-TxRx-0", 0, 30};
    const CpuSet all_ = CpuSet::range(0, 3);
    test::Machine machine_;
    host::Root root_;
    test::ReadableLog log_;
    state::Journal journal_;
    test::SimulatedEnforcer enforcer_;
    enforcer::Executor executor_;
    inventory::FactSources sources_;
    bool is_done_ = false;
};

TEST_F(RestorerTest, ASliceResetsOneInterfaceAtMost) {
    auto job = restorer();
    std::size_t before = 0;
    for (bool is_over = false; !is_over;) {
        is_over = job.step(out_of_time);
        EXPECT_LE(enforcer_.done.size(), before + 1) << "a driver may take seconds for one";
        before = enforcer_.done.size();
    }
    EXPECT_TRUE(is_done_);
    EXPECT_EQ(enforcer_.channels["eth0"], (Channels{8, 0, 0}));
    EXPECT_EQ(enforcer_.channels["eth1"], (Channels{8, 0, 0}));
    EXPECT_EQ(machine_.irq(30), "0-3");
    EXPECT_EQ(journal_.size(), 0U);
}

TEST_F(RestorerTest, WhatAResetOfAKeptInterfaceChangesIsPutBackAfterIt) {
    for (const machine::Subject& subject :
         {machine::Subject(irq_), machine::Subject(eth0_), machine::Subject(eth1_)})
        ASSERT_TRUE(journal_.settle(subject, state::Parting::kept));
    auto job = restorer(true);
    while (!job.step(out_of_time)) {
    }
    ASSERT_EQ(enforcer_.done.size(), 3U);
    EXPECT_EQ(enforcer_.done.back(), machine::Subject(irq_));
    EXPECT_EQ(enforcer_.channels["eth0"], (Channels{8, 0, 0}));
    EXPECT_EQ(machine_.irq(30), "0-3");
}

} // namespace
} // namespace affinityd::app
