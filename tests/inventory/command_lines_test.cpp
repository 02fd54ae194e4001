// SPDX-License-Identifier: Apache-2.0
// A pipe without a writer's words stands for the arguments of a process that keeps its readers waiting.
#include "inventory/command_lines.hpp"
#include "support/nobody.hpp"
#include "support/readable.hpp"

#include <array>
#include <cerrno>
#include <set>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::inventory {
namespace {

using affinityd::test::is_readable;
using host::Fd;
using namespace std::chrono_literals;

constexpr std::size_t enough = 1024;

uid_t user_1000() { return 1000; }
CommandLines::User user(uid_t number) {
    return [number] { return number; };
}

/// Arguments that can be read once they were said.
class Arguments {
  public:
    Arguments() {
        std::array<int, 2> ends{};
        EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
        read_.reset(ends[0]);
        write_.reset(ends[1]);
    }
    [[nodiscard]] Fd file() const { return Fd(::fcntl(read_.get(), F_DUPFD_CLOEXEC, 0)); }
    void say(std::string_view text) {
        EXPECT_EQ(::write(write_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
        write_.reset();
    }

  private:
    Fd read_, write_;
};

/// The answers of `count` processes, whenever they come.
std::set<int> await_late(CommandLines& lines, std::size_t count) {
    std::set<int> came;
    while (came.size() < count && is_readable(lines.fd(), 20'000))
        for (const auto& process : lines.take_late().processes)
            came.insert(process.tid);
    return came;
}

TEST(CommandLines, WhatIsThereIsReadToTheLimit) {
    CommandLines lines(20s);
    Arguments arguments, more;
    arguments.say("sleep");
    more.say(std::string(100, 'x'));
    EXPECT_EQ(lines.find({50, 1}, user_1000), std::nullopt);
    const auto answer = lines.read({50, 1}, arguments.file(), enough, user_1000);
    EXPECT_EQ(answer.code, 0);
    EXPECT_EQ(answer.text, "sleep");
    EXPECT_EQ(lines.read({51, 1}, more.file(), 10, user_1000).text, std::string(10, 'x'));
    EXPECT_EQ(lines.read({52, 1}, Fd(::open("/", O_RDONLY | O_CLOEXEC)), enough, user_1000).code, EISDIR);
    EXPECT_FALSE(is_readable(lines.fd(), 0));
}

TEST(CommandLines, ASilentProcessKeepsNobodyWaitingAndIsAskedOnce) {
    CommandLines lines(1ms);
    Arguments silent;
    EXPECT_EQ(lines.read({50, 1}, silent.file(), enough, user_1000).code, EAGAIN);
    for (int i = 0; i < 1000; ++i) {
        const auto answer = lines.find({50, 1}, user_1000);
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->code, EAGAIN);
    }
    EXPECT_EQ(lines.find({51, 1}, user_1000), std::nullopt) << "others are asked";
    EXPECT_EQ(lines.find({50, 2}, user_1000), std::nullopt) << "also a later one of the same number";
    silent.say("late");
    EXPECT_EQ(await_late(lines, 1), std::set{50});
    EXPECT_EQ(lines.find({50, 1}, user_1000).value().text, "late");
    EXPECT_EQ(lines.find({50, 1}, user_1000), std::nullopt) << "the next look reads it again";
}

TEST(CommandLines, AnAnswerThatIsLateForLongIsNoneAnyMore) {
    CommandLines lines(1ms);
    Arguments silent;
    EXPECT_EQ(lines.read({50, 1}, silent.file(), enough, user_1000).code, EAGAIN);
    silent.say("late");
    EXPECT_EQ(await_late(lines, 1), std::set{50});
    EXPECT_EQ(lines.find({50, 1}, user_1000, CommandLines::Clock::now() + 1h), std::nullopt);
}

TEST(CommandLines, OfSilentProcessesNoMoreThanAFewAreAskedUntilOneAnswers) {
    CommandLines lines(1ms);
    std::array<Arguments, CommandLines::most_waiting> silent;
    int pid = 100;
    for (const auto& arguments : silent) {
        const auto its = user(static_cast<uid_t>(pid));
        ASSERT_EQ(lines.find({pid, 1}, its), std::nullopt);
        EXPECT_EQ(lines.read({pid++, 1}, arguments.file(), enough, its).code, EAGAIN);
    }
    ASSERT_TRUE(lines.find({500, 1}, user_1000));
    EXPECT_EQ(lines.find({500, 1}, user_1000)->code, EAGAIN) << "who could answer is not asked either";
    EXPECT_EQ(lines.refused(), std::vector<uid_t>{}) << "not before a second is over";
    EXPECT_FALSE(lines.refused(CommandLines::Clock::now() + 1s));
    silent[1].say("at last");
    ASSERT_TRUE(is_readable(lines.fd(), 20'000));
    const auto late = lines.take_late();
    EXPECT_EQ(late.processes, (std::vector<TaskId>{{101, 1}}));
    EXPECT_TRUE(late.has_room);
    EXPECT_EQ(lines.find({500, 1}, user_1000), std::nullopt);
    EXPECT_EQ(lines.refused(CommandLines::Clock::now() + 1s), std::vector<uid_t>{});
}

TEST(CommandLines, OneUsersSilentProcessesKeepNobodyElseFromBeingAsked) {
    CommandLines lines(1ms);
    std::array<Arguments, CommandLines::most_waiting_for_one> silent;
    int pid = 100;
    for (const auto& arguments : silent) {
        ASSERT_EQ(lines.find({pid, 1}, user(7)), std::nullopt);
        EXPECT_EQ(lines.read({pid++, 1}, arguments.file(), enough, user(7)).code, EAGAIN);
    }
    ASSERT_TRUE(lines.find({500, 1}, user(7)));
    EXPECT_EQ(lines.find({501, 1}, user(8)), std::nullopt);
    EXPECT_EQ(lines.refused(CommandLines::Clock::now() + 1s), std::vector<uid_t>{7});
    silent[0].say("at last");
    ASSERT_TRUE(is_readable(lines.fd(), 20'000));
    EXPECT_TRUE(lines.take_late().has_room);
    EXPECT_EQ(lines.find({500, 1}, user(7)), std::nullopt);
}

TEST(CommandLines, ASilentProcessIsToldOnceAfterASecond) {
    CommandLines lines(1ms);
    Arguments silent;
    EXPECT_EQ(lines.read({50, 7}, silent.file(), enough, user_1000).code, EAGAIN);
    const auto begun = CommandLines::Clock::now();
    const std::vector<TaskId> told{{50, 7}};
    EXPECT_TRUE(lines.silent(begun - 1s).empty());
    EXPECT_EQ(lines.silent(begun + 1s), told);
    EXPECT_EQ(lines.take_silent(begun + 1s), told);
    EXPECT_TRUE(lines.take_silent(begun + 2s).empty());
    EXPECT_EQ(lines.silent(begun + 2s), told);
    silent.say("");
    EXPECT_EQ(await_late(lines, 1), std::set{50});
    EXPECT_TRUE(lines.silent(begun + 1h).empty());
}

TEST(CommandLines, OneThatIsOftenLateIsNotWaitedFor) {
    constexpr auto patience = 300ms;
    CommandLines lines(patience);
    Arguments first, second;
    EXPECT_EQ(lines.read({50, 1}, first.file(), enough, user_1000).code, EAGAIN);
    first.say("one");
    EXPECT_EQ(await_late(lines, 1), std::set{50});
    EXPECT_EQ(lines.find({50, 1}, user_1000).value().text, "one");
    const auto begun = CommandLines::Clock::now();
    EXPECT_EQ(lines.read({50, 1}, second.file(), enough, user_1000).code, EAGAIN);
    EXPECT_LT(CommandLines::Clock::now() - begun, patience);
    second.say("two");
    EXPECT_EQ(await_late(lines, 1), std::set{50});
    EXPECT_EQ(lines.find({50, 1}, user_1000).value().text, "two");
}

TEST(CommandLines, WhereNoThreadCanBeMadeNothingIsReadAndTheNextCallTriesAgain) {
    const pid_t child = ::fork();
    if (child == 0) {
        const rlimit none{0, 0};
        using affinityd::test::nobody; // the limit does not hold root
        if (::setrlimit(RLIMIT_NPROC, &none) != 0 || (::geteuid() == 0 && ::setuid(nobody) != 0)) ::_exit(2);
        CommandLines lines;
        const auto is_short = [&] { return lines.read({50, 1}, Fd(), enough, user_1000).code == EMFILE; };
        ::_exit(is_short() && is_short() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(CommandLines, TheEndWaitsForNoSilentProcess) {
    Arguments silent, other;
    {
        CommandLines lines(1ms);
        EXPECT_EQ(lines.read({50, 1}, silent.file(), enough, user_1000).code, EAGAIN);
        other.say("x");
        static_cast<void>(lines.read({51, 1}, other.file(), enough, user_1000));
    }
    silent.say("too late");
}

} // namespace
} // namespace affinityd::inventory
