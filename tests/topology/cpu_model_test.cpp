// SPDX-License-Identifier: Apache-2.0
#include "host/root.hpp"
#include "support/tree.hpp"
#include "topology/reader.hpp"

#include <gtest/gtest.h>

namespace affinityd::topology {
namespace {

std::string model_in(const std::string& cpuinfo) {
    const test::Tree tree;
    tree.file("proc/cpuinfo", cpuinfo);
    return read_cpu_model(*host::Root::open(tree.path()));
}

TEST(CpuModel, IsWhatTheFirstCpuCallsItself) {
    EXPECT_EQ(model_in("processor\t: 0\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) Gold 6444Y\n\n"
                       "processor\t: 1\nmodel name\t: another\n"),
              "Intel(R) Xeon(R) Gold 6444Y");
    EXPECT_EQ(model_in("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n"), "POWER9, altivec supported");
    EXPECT_EQ(model_in("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"),
              "arm implementer 0x41 part 0xd0c");
    EXPECT_EQ(model_in("processor\t: 0\nuarch\t\t: sifive,u74-mc\n"), "sifive,u74-mc");
}

TEST(CpuModel, IsEmptyWhereNothingSaysIt) {
    EXPECT_EQ(model_in(""), "");
    EXPECT_EQ(model_in(std::string("\0\xff:\n:::\nmodel name\t:\n", 22)), "");
}

} // namespace
} // namespace affinityd::topology
