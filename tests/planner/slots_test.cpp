// SPDX-License-Identifier: Apache-2.0
#include "machines.hpp"
#include "planner/slots.hpp"

namespace affinityd::planner {
namespace {

using policy::Bind;
using policy::Smt;
using policy::Spread;

struct SlotCase {
    Spread spread;
    Bind bind;
    Smt smt;
    std::string allowed;
    std::string near;
    std::vector<std::string> cpus;
    std::vector<std::string> masks;
};

// clang-format off
const SlotCase slot_cases[] = {
    {Spread::any, Bind::set, Smt::share, "0-7", "", {"0-7"}, {"0-7"}},
    {Spread::any, Bind::llc, Smt::share, "0-7", "", {"0-3", "4-7"}, {"0-3", "4-7"}},
    {Spread::any, Bind::core, Smt::share, "0-7", "", {"0-1", "2-3", "4-5", "6-7"}, {"0-1", "2-3", "4-5", "6-7"}},
    {Spread::any, Bind::cpu, Smt::share, "0-3", "", {"0", "2", "1", "3"}, {"0", "2", "1", "3"}},
    {Spread::any, Bind::cpu, Smt::avoid, "0-3", "", {"0", "2"}, {"0", "2"}},
    {Spread::any, Bind::cpu, Smt::avoid, "1,3", "", {"1", "3"}, {"1", "3"}},
    {Spread::any, Bind::cpu, Smt::avoid, "0,3", "", {"0", "3"}, {"0", "3"}},
    {Spread::any, Bind::cpu, Smt::share, "0,1,3", "", {"0", "3", "1"}, {"0", "3", "1"}},
    {Spread::core, Bind::llc, Smt::share, "0-7", "", {"0-1", "2-3", "4-5", "6-7"}, {"0-3", "0-3", "4-7", "4-7"}},
    {Spread::core, Bind::set, Smt::share, "0-3", "", {"0-1", "2-3"}, {"0-3", "0-3"}},
    {Spread::node, Bind::core, Smt::share, "0-7", "", {"0-1", "4-5", "2-3", "6-7"}, {"0-1", "4-5", "2-3", "6-7"}},
    {Spread::socket, Bind::cpu, Smt::avoid, "0-7", "", {"0", "4", "2", "6"}, {"0", "4", "2", "6"}},
    {Spread::any, Bind::core, Smt::share, "0-7", "6", {"6-7", "4-5", "0-1", "2-3"}, {"6-7", "4-5", "0-1", "2-3"}},
    {Spread::any, Bind::node, Smt::share, "3-4", "", {"3", "4"}, {"3", "4"}},
};
// clang-format on

TEST(Slots, AreGivenOutInTheDocumentedOrder) {
    const auto topology = test::two_sockets();
    for (const auto& c : slot_cases) {
        policy::Placement placement;
        placement.spread = c.spread;
        placement.bind = c.bind;
        placement.smt = c.smt;
        std::vector<std::string> cpus;
        std::vector<std::string> masks;
        for (const auto& slot :
             make_slots(topology, placement, *CpuSet::parse_list(c.allowed), *CpuSet::parse_list(c.near))) {
            cpus.push_back(slot.cpus.to_list());
            masks.push_back(slot.mask.to_list());
        }
        EXPECT_EQ(cpus, c.cpus) << "spread " << static_cast<int>(c.spread) << " bind "
                                << static_cast<int>(c.bind) << " of " << c.allowed;
        EXPECT_EQ(masks, c.masks) << "spread " << static_cast<int>(c.spread) << " bind "
                                  << static_cast<int>(c.bind) << " of " << c.allowed;
    }
}

TEST(Slots, CoverAMachineOfWhichOnlyTheOnlineCpusAreKnown) {
    topology::Topology bare;
    bare.online = *CpuSet::parse_list("0-3,7");
    for (const auto spread :
         {Spread::any, Spread::cpu, Spread::core, Spread::llc, Spread::node, Spread::socket})
        for (const auto bind : {Bind::cpu, Bind::core, Bind::llc, Bind::node, Bind::set}) {
            policy::Placement placement;
            placement.spread = spread;
            placement.bind = bind;
            CpuSet covered;
            for (const auto& slot : make_slots(bare, placement, bare.online, {})) {
                EXPECT_FALSE(slot.mask.empty());
                covered |= slot.cpus;
            }
            EXPECT_EQ(covered, bare.online)
                << "spread " << static_cast<int>(spread) << " bind " << static_cast<int>(bind);
        }
    EXPECT_EQ(groups_of(bare, Bind::core, bare.online).size(), 5U); // each a core of its own
}

TEST(Slots, NeverLeaveTheAllowedSetAndAreNeverEmpty) {
    const auto topology = test::two_sockets();
    for (unsigned bits = 1; bits < 256; ++bits) {
        const std::uint64_t word = bits;
        const CpuSet allowed = CpuSet::from_words({&word, 1});
        for (const auto spread :
             {Spread::any, Spread::cpu, Spread::core, Spread::llc, Spread::node, Spread::socket})
            for (const auto bind : {Bind::cpu, Bind::core, Bind::llc, Bind::node, Bind::set})
                for (const auto smt : {Smt::share, Smt::avoid}) {
                    policy::Placement placement;
                    placement.spread = spread;
                    placement.bind = bind;
                    placement.smt = smt;
                    const auto slots = make_slots(topology, placement, allowed, {});
                    ASSERT_FALSE(slots.empty());
                    for (const auto& slot : slots) {
                        ASSERT_FALSE(slot.mask.empty());
                        ASSERT_FALSE(slot.cpus.empty());
                        ASSERT_TRUE(allowed.contains(slot.mask))
                            << allowed.to_list() << " " << slot.mask.to_list();
                        ASSERT_TRUE(allowed.contains(slot.cpus));
                    }
                }
    }
}

} // namespace
} // namespace affinityd::planner
