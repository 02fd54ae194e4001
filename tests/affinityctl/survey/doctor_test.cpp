// SPDX-License-Identifier: Apache-2.0
// Findings are the subject of tests/blackbox/doctor_test.py.
#include "affinityctl/survey/doctor.hpp"

#include <map>

#include <gtest/gtest.h>

namespace affinityctl::survey {
namespace {

TEST(Doctor, CountsPrivateMemoryByNode) {
    struct {
        const char* text;
        std::map<unsigned, std::uint64_t> kib;
    } const cases[] = {
        {"", {}},
        {"7f00 default anon=3 dirty=3 active=0 N0=1 N1=2 kernelpagesize_kB=4", {{0, 4}, {1, 8}}},
        {"7f00 default file=/lib/libc.so anon=1 mapped=9 N0=9 kernelpagesize_kB=4", {}},
        {"7f00 default heap anon=2 N1=2 kernelpagesize_kB=4\n7f01 default anon=1 huge N1=1 "
         "kernelpagesize_kB=2048\n",
         {{1, 2056}}},
        {"7f00 default anon=x N0= N=4 Nx=1 N0=1 =\n", {{0, 4}}},
    };
    for (const auto& test : cases)
        EXPECT_EQ(private_memory(test.text), test.kib) << test.text;
}

} // namespace
} // namespace affinityctl::survey
