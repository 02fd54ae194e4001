// SPDX-License-Identifier: Apache-2.0
#include "inventory/polled_files.hpp"

#include <string>

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace affinityd::inventory {
namespace {

using Kind = WaitingCall::Kind;

TEST(PolledFiles, AreReadFromFdinfo) {
    const auto files =
        parse_polled("pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1057\n"
                     "tfd:        8 events:       19 data:     7f12a4c0  pos:0 ino:1f3 sdev:8\n"
                     "tfd:        7 events: 80000019 data: ffffffffffffffff  pos:0 ino:9 sdev:8\n");
    EXPECT_EQ(files, (std::vector<PolledFile>{{7, 9}, {8, 0x1f3}}));
}

TEST(PolledFiles, MalformedLinesArePassedOver) {
    EXPECT_TRUE(parse_polled("").empty());
    EXPECT_TRUE(parse_polled("tfd:\ntfd: x ino:3\ntfd: 4\ntfd: 4 ino:\ntfd: 4 ino:zz\nTFD: 4 ino:3").empty());
    EXPECT_TRUE(parse_polled("tfd: 99999999999 ino:3\ntfd: 4 ino:11112222333344445").empty());
}

TEST(Waiting, IsReadFromSyscall) {
    EXPECT_EQ(parse_waiting(std::to_string(SYS_epoll_pwait) +
                            " 0x5 0x55d2f0 0x200 0xffffffff 0x0 0x8 0x7ffd 0x7f40\n"),
              (WaitingCall{Kind::epoll, 5}));
    EXPECT_EQ(parse_waiting("441 0xa 0x1 0x2 0x3 0x4 0x5 0x6 0x7\n"), (WaitingCall{Kind::epoll, 10}));
    EXPECT_EQ(parse_waiting(std::to_string(SYS_accept4) + " 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f40"),
              (WaitingCall{Kind::accept, 3}));
    for (const long call : {SYS_read, SYS_readv, SYS_recvfrom, SYS_recvmsg})
        EXPECT_EQ(parse_waiting(std::to_string(call) + " 0x7 0x7ffd 0x200"), (WaitingCall{Kind::read, 7}));
}

TEST(Waiting, EverythingElseIsNone) {
    EXPECT_FALSE(parse_waiting("running\n"));
    EXPECT_FALSE(parse_waiting(""));
    EXPECT_FALSE(parse_waiting("-1 0x7ffd 0x7f40"));
    EXPECT_FALSE(parse_waiting(std::to_string(SYS_accept4) + " 0xffffffffffffffff 0x0"));
    EXPECT_FALSE(parse_waiting(std::to_string(SYS_write) + " 0x3 0x0"));
}

} // namespace
} // namespace affinityd::inventory
