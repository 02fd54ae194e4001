// SPDX-License-Identifier: Apache-2.0
#include "event_bytes.hpp"
#include "host/fd.hpp"
#include "host/proc_connector.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::host {
namespace {

using namespace test;
using Wanted = ProcConnector::Wanted;

/// The kernel itself runs the filter, on a pair of sockets that needs no privilege.
class Filtered {
  public:
    explicit Filtered(const Wanted& wanted) {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
        in_.reset(ends[0]);
        out_.reset(ends[1]);
        auto program = proc_event_filter(wanted);
        const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
        EXPECT_EQ(::setsockopt(out_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter), 0);
    }
    bool passes(const std::vector<std::byte>& bytes) const {
        EXPECT_EQ(::send(in_.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
        std::array<std::byte, 256> got{};
        return ::recv(out_.get(), got.data(), got.size(), 0) == static_cast<ssize_t>(bytes.size());
    }

  private:
    Fd in_;
    Fd out_;
};

const std::map<std::string, std::vector<std::byte>>& samples() {
    static const std::map<std::string, std::vector<std::byte>> all{
        {"process fork", EventBytes{.what = event_fork}.numbers({10, 10, 20, 20}).build()},
        {"thread fork", EventBytes{.what = event_fork}.numbers({10, 10, 21, 10}).build()},
        {"exec", EventBytes{.what = event_exec}.numbers({20, 20}).build()},
        {"comm", EventBytes{.what = event_comm}.numbers({21, 20}).text("x").build()},
        {"process exit", EventBytes{.what = event_exit}.numbers({20, 20, 0, 17, 1, 1}).build()},
        {"thread exit", EventBytes{.what = event_exit}.numbers({21, 20, 0, 17, 1, 1}).build()},
        {"uid", EventBytes{.what = event_uid}.numbers({20, 20, 0, 0}).build()},
        {"gid", EventBytes{.what = 0x40}.numbers({20, 20, 0, 0}).build()},
        {"ack", EventBytes{.what = 0}.numbers({0}).build()},
        {"sid", EventBytes{.what = 0x80}.numbers({20, 20}).build()},
        {"coredump", EventBytes{.what = 0x40000000}.numbers({20, 20}).build()},
        {"cut", std::vector<std::byte>(20)}};
    return all;
}

struct Case {
    Wanted wanted;
    std::vector<std::string> passing;
};

class ProcFilter : public testing::TestWithParam<Case> {};

TEST_P(ProcFilter, LetsExactlyTheWantedThrough) {
    const Filtered filtered(GetParam().wanted);
    for (const auto& [name, bytes] : samples()) {
        const bool expected = std::ranges::find(GetParam().passing, name) != GetParam().passing.end();
        EXPECT_EQ(filtered.passes(bytes), expected) << name;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Table, ProcFilter,
    testing::Values(Case{{}, {"exec", "comm"}}, Case{{.thread_forks = true}, {"exec", "comm", "thread fork"}},
                    Case{{.process_forks = true}, {"exec", "comm", "process fork"}},
                    Case{{.ids = true}, {"exec", "comm", "uid", "gid"}},
                    Case{{.exits = true}, {"exec", "comm", "process exit"}},
                    Case{{.thread_exits = true}, {"exec", "comm", "thread exit"}},
                    Case{{.execs = false, .renames = false}, {}}, Case{{.execs = false}, {"comm"}},
                    Case{{true, true, true, true, true, true},
                         {"exec", "comm", "process fork", "thread fork", "process exit", "thread exit"}}));

TEST(ProcFilterOfAFlood, DropsRenamesAndThreadsOfMutedProcessesAndOfNoOthers) {
    Wanted wanted{.thread_forks = true, .process_forks = true, .exits = true, .thread_exits = true};
    for (int pid = 1000; pid < 1015; ++pid)
        wanted.muted.push_back(pid);
    wanted.muted.push_back(10);
    const Filtered filtered(wanted);
    const auto comm = [](unsigned tid, unsigned pid) {
        return EventBytes{.what = event_comm}.numbers({tid, pid}).text("x").build();
    };
    for (const unsigned pid : {1000U, 1014U, 10U}) {
        EXPECT_FALSE(filtered.passes(comm(pid, pid))) << pid;
        EXPECT_FALSE(filtered.passes(comm(pid + 5000, pid))) << "a thread of " << pid;
        EXPECT_FALSE(filtered.passes(EventBytes{.what = event_fork}.numbers({7, 7, 8000, pid}).build()));
        EXPECT_FALSE(
            filtered.passes(EventBytes{.what = event_exit}.numbers({8000, pid, 0, 17, 1, 1}).build()));
        EXPECT_TRUE(filtered.passes(EventBytes{.what = event_exec}.numbers({pid, pid}).build()));
        EXPECT_TRUE(filtered.passes(EventBytes{.what = event_fork}.numbers({pid, pid, 9000, 9000}).build()));
        EXPECT_TRUE(filtered.passes(EventBytes{.what = event_exit}.numbers({pid, pid, 0, 17, 1, 1}).build()))
            << "its end";
    }
    for (const unsigned pid : {999U, 1015U, 11U, 10U << 24U}) {
        EXPECT_TRUE(filtered.passes(comm(pid, pid))) << pid;
        EXPECT_TRUE(filtered.passes(EventBytes{.what = event_fork}.numbers({7, 7, 8000, pid}).build()));
        EXPECT_TRUE(
            filtered.passes(EventBytes{.what = event_exit}.numbers({8000, pid, 0, 17, 1, 1}).build()));
    }
}

TEST(ProcFilterOfAFlood, NoMoreThanSixteenCount) {
    Wanted wanted;
    for (int pid = 1; pid <= 500; ++pid)
        wanted.muted.push_back(pid);
    const Filtered filtered(wanted);
    EXPECT_FALSE(filtered.passes(EventBytes{.what = event_comm}.numbers({16, 16}).text("x").build()));
    EXPECT_TRUE(filtered.passes(EventBytes{.what = event_comm}.numbers({17, 17}).text("x").build()));
}

TEST(ProcMask, HasABitForEveryKindThatMayPass) {
    EXPECT_EQ(proc_event_mask({}), event_exec | event_comm);
    EXPECT_EQ(proc_event_mask({.thread_forks = true, .execs = false, .renames = false}), event_fork);
    EXPECT_EQ(proc_event_mask({.process_forks = true, .thread_exits = true}),
              event_exec | event_comm | event_fork | event_exit);
    EXPECT_EQ(proc_event_mask({.execs = false, .renames = false}), 0U);
}

} // namespace
} // namespace affinityd::host
