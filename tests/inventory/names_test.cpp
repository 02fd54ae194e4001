// SPDX-License-Identifier: Apache-2.0
#include "inventory/users.hpp"
#include "recorded.hpp"
#include "support/readable.hpp"
#include "support/soon.hpp"

#include <atomic>
#include <filesystem>
#include <future>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::inventory {
namespace {

using affinityd::test::is_readable;
using affinityd::test::soon;
using namespace test;

TEST(ParseNames, FirstNameOfAnIdCountsAndOddLinesArePassedOver) {
    const auto names = parse_names("root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:\n+nis:x:7:\n:x:8:\nx\nx:y\n"
                                   "big:x:4294967296:\nneg:x:-1:\n#no:x:9:\nlast:x:5");
    EXPECT_EQ(names, (std::unordered_map<unsigned, std::string>{{0, "root"}, {5, "last"}}));
    EXPECT_TRUE(parse_names("").empty());
    EXPECT_TRUE(parse_names(std::string(300, 'a') + ":x:1:").empty()) << "no login name is so long";
}

TEST(UserNames, FilesAreReadAgainWhenTheyChange) {
    const Tree tree;
    tree.file("etc/passwd", "alice:x:1000:\n");
    const auto root = open_root(tree);
    UserNames names(root, {});
    EXPECT_EQ(names.find(NameKind::user, 1000), "alice");
    EXPECT_EQ(names.find(NameKind::user, 1001), "1001");
    EXPECT_EQ(names.find(NameKind::group, 1000), "1000") << "there is no etc/group";
    tree.file("etc/new", "alice:x:1000:\nbob:x:1001:\n");
    std::filesystem::rename(tree.path("etc/new"), tree.path("etc/passwd"));
    EXPECT_EQ(names.find(NameKind::user, 1001), "1001") << "not before it is refreshed";
    names.refresh();
    EXPECT_EQ(names.find(NameKind::user, 1001), "bob");
    std::filesystem::remove(tree.path("etc/passwd"));
    names.refresh();
    EXPECT_EQ(names.find(NameKind::user, 1001), "1001");
}

/// A name service that answers when it is let.
struct SlowService {
    std::promise<void> gate;
    std::shared_future<void> open = gate.get_future().share();
    std::shared_ptr<std::atomic<unsigned>> asked = std::make_shared<std::atomic<unsigned>>(0);

    [[nodiscard]] AskName ask() const {
        return [open = open, asked = asked](NameKind kind, unsigned id) -> std::optional<std::string> {
            ++*asked;
            open.wait();
            if (id == 7) return std::nullopt;
            return (kind == NameKind::user ? "user" : "group") + std::to_string(id);
        };
    }
};

TEST(NameService, CallerNeverWaitsAndTheNumberStandsUntilTheAnswerIsThere) {
    const Tree tree;
    tree.file("etc/passwd", "alice:x:1000:\n");
    const auto root = open_root(tree);
    SlowService slow;
    NameService service(slow.ask());
    UserNames names(root, [&](NameKind kind, unsigned id) { return service.find(kind, id); });
    EXPECT_EQ(names.find(NameKind::user, 1000), "alice");
    EXPECT_EQ(slow.asked->load(), 0U) << "the files know it";
    for (int i = 0; i < 1000; ++i) // would hang if it waited: the gate is shut
        EXPECT_EQ(names.find(NameKind::user, 5000), "5000");
    EXPECT_EQ(names.find(NameKind::group, 5000), "5000");
    EXPECT_EQ(names.find(NameKind::user, 7), "7");
    EXPECT_FALSE(is_readable(service.fd(), 0));
    slow.gate.set_value();
    EXPECT_TRUE(is_readable(service.fd(), 20'000));
    EXPECT_TRUE(soon([&] { return service.find(NameKind::user, 7).has_value(); }));
    EXPECT_TRUE(service.take_answers());
    EXPECT_FALSE(is_readable(service.fd(), 0));
    EXPECT_FALSE(service.take_answers());
    EXPECT_EQ(names.find(NameKind::user, 5000), "user5000");
    EXPECT_EQ(names.find(NameKind::group, 5000), "group5000");
    EXPECT_EQ(names.find(NameKind::user, 7), "7") << "it has no name";
    EXPECT_EQ(slow.asked->load(), 3U) << "each question is asked once";
}

TEST(NameService, QuestionsAreBounded) {
    SlowService slow;
    NameService service(slow.ask());
    for (unsigned id = 100; id < 10'100; ++id)
        EXPECT_FALSE(service.find(NameKind::user, id));
    slow.gate.set_value();
    EXPECT_TRUE(soon([&] { return service.find(NameKind::user, 100 + 100).has_value(); }));
    EXPECT_LE(slow.asked->load(), NameService::most_questions + 2);
    EXPECT_TRUE(soon([&] { return service.find(NameKind::user, 10'099).has_value(); }))
        << "what was dropped may be asked again";
}

TEST(NameService, OldAnswersHoldWhileTheyAreAskedAnew) {
    auto calls = std::make_shared<std::atomic<unsigned>>(0);
    NameService service([calls](NameKind, unsigned) { return "name" + std::to_string(++*calls); });
    EXPECT_TRUE(soon([&] { return service.find(NameKind::user, 1) == "name1"; }));
    service.refresh();
    EXPECT_EQ(service.find(NameKind::user, 1), "name1");
    EXPECT_TRUE(soon([&] { return service.find(NameKind::user, 1) == "name2"; }));
    EXPECT_EQ(calls->load(), 2U);
}

TEST(NameService, WhereNoThreadCanBeMadeTheNumberStandsAndTheNextCallTriesAgain) {
    const pid_t child = ::fork();
    if (child == 0) {
        const rlimit none{0, 0};
        constexpr uid_t nobody = 65534; // the limit does not hold root
        if (::setrlimit(RLIMIT_NPROC, &none) != 0 || (::geteuid() == 0 && ::setuid(nobody) != 0)) ::_exit(2);
        NameService service([](NameKind, unsigned) { return std::optional<std::string>("known"); });
        const bool is_unknown = !service.find(NameKind::user, 54321) && !service.find(NameKind::user, 54321);
        ::_exit(is_unknown ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(NameService, EndDoesNotWaitForASilentService) {
    SlowService slow;
    {
        NameService service(slow.ask());
        EXPECT_FALSE(service.find(NameKind::user, 1));
        EXPECT_TRUE(soon([&] { return slow.asked->load() == 1; }));
    }
    slow.gate.set_value(); // only now
}

} // namespace
} // namespace affinityd::inventory
