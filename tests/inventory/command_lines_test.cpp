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
        for (const auto& process : lines.take_late())
            came.insert(process.tid);
    return came;
}

TEST(CommandLines, AreReadToTheLimit) {
    CommandLines lines(20s);
    Arguments arguments;
    arguments.say("a long line");
    EXPECT_EQ(lines.read({50, 1}, arguments.file(), 6, 1000).text, "a long");
    EXPECT_EQ(lines.read({52, 1}, Fd(::open("/", O_RDONLY | O_CLOEXEC)), enough, 1000).code, EISDIR);
}

TEST(CommandLines, ASilentProcessKeepsNoReaderWaitingAndIsAskedOnce) {
    CommandLines lines(1ms);
    Arguments silent, other;
    other.say("other");
    EXPECT_EQ(lines.read({50, 1}, silent.file(), enough, 1000).code, EAGAIN);
    for (int i = 0; i < 1000; ++i)
        ASSERT_EQ(lines.read({50, 1}, silent.file(), enough, 1000).code, EAGAIN);
    const auto later = CommandLines::Clock::now() + 2s;
    EXPECT_EQ(lines.silent(later), (std::vector<TaskId>{{50, 1}}));
    silent.say("late");
    EXPECT_EQ(await_late(lines, 1), std::set{50});
    EXPECT_EQ(lines.read({50, 1}, silent.file(), enough, 1000).text, "late");
    EXPECT_TRUE(lines.silent(later).empty());
}

TEST(CommandLines, SilentProcessesOfOneUserKeepNoOtherUserFromBeingAsked) {
    CommandLines lines(1ms);
    std::array<Arguments, 4> silent;
    for (int i = 0; i < 4; ++i) {
        const uid_t user = i < 3 ? 1000 : 1001;
        const auto file = static_cast<std::size_t>(i);
        EXPECT_EQ(lines.read({50 + i, 1}, silent[file].file(), enough, user).code, EAGAIN);
    }
    EXPECT_EQ(lines.silent(CommandLines::Clock::now() + 2s), (std::vector<TaskId>{{50, 1}, {51, 1}, {53, 1}}))
        << "the third was not asked";
}

} // namespace
} // namespace affinityd::inventory
