// SPDX-License-Identifier: Apache-2.0
#include "host/file.hpp"
#include "state/last_good.hpp"
#include "support/full_disk.hpp"
#include "support/tree.hpp"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::state {
namespace {

namespace fs = std::filesystem;

Result<void> write(LastGood& into) {
    while (!into.step([] { return true; })) {
    }
    return into.result();
}

Result<void> keep(LastGood& into, const std::map<std::string, std::string>& good,
                  const LastGood::Names& faulty) {
    into.keep(good, faulty);
    return write(into);
}

Result<void> keep(LastGood&& into, const std::map<std::string, std::string>& good,
                  const LastGood::Names& faulty) {
    return keep(into, good, faulty);
}

class LastGoodTest : public testing::Test {
  protected:
    [[nodiscard]] std::string folder() const { return tree_.path("last-good"); }
    [[nodiscard]] std::string text(std::string_view name) const {
        const auto found = LastGood(folder()).find(name);
        return !found ? "refused" : *found ? (*found)->text : "none";
    }
    test::Tree tree_;
};

TEST_F(LastGoodTest, TheNextDaemonFindsWhatWasInForce) {
    LastGood kept(folder());
    EXPECT_FALSE(kept.find("a").value());
    for (const std::string good : {"version: 1\n", "no line end", ""}) {
        ASSERT_TRUE(keep(kept, {{"a", good}}, {}));
        EXPECT_EQ(text("a"), good);
        EXPECT_EQ(kept.find("a").value()->path, folder() + "/a.yaml");
    }
}

TEST_F(LastGoodTest, WhatIsFaultyStaysAndWhatIsGoneGoes) {
    LastGood kept(folder());
    ASSERT_TRUE(keep(kept, {{"a", "1"}, {"b", "2"}, {"c", "3"}}, {}));
    ASSERT_TRUE(keep(kept, {{"c", "4"}}, {"a"}));
    EXPECT_EQ(kept.find("a").value()->text, "1");
    EXPECT_FALSE(kept.find("b").value());
    EXPECT_EQ(text("a"), "1");
    EXPECT_EQ(text("b"), "none");
    EXPECT_EQ(text("c"), "4");
    // So does a daemon that has not seen it good.
    ASSERT_TRUE(keep(LastGood(folder()), {}, {"a"}));
    EXPECT_EQ(text("a"), "1");
    EXPECT_EQ(text("c"), "none");
}

TEST_F(LastGoodTest, WhatIsCutOrChangedIsNotTaken) {
    ASSERT_TRUE(keep(LastGood(folder()), {{"a", "match: {comm: a}\nexclusive: true\n"}}, {}));
    const auto path = folder() + "/a.yaml";
    const auto whole = **host::read_file(path);
    for (std::size_t length = 0; length < whole.size(); ++length) {
        ASSERT_TRUE(host::replace_file(path, whole.substr(0, length)));
        EXPECT_EQ(text("a"), "none") << length;
    }
    auto other = whole;
    other.front() = 'n';
    ASSERT_TRUE(host::replace_file(path, other));
    EXPECT_EQ(text("a"), "none");
}

TEST_F(LastGoodTest, AFolderThatTakesNothingIsToldAndMemoryHasThem) {
    tree_.file("last-good", "a file in the folder's place");
    LastGood kept(folder());
    EXPECT_FALSE(keep(kept, {{"a", "1"}}, {}));
    ASSERT_TRUE(kept.find("a").value());
    EXPECT_EQ(kept.find("a").value()->text, "1");
}

TEST_F(LastGoodTest, WhatAFullDiskDidNotTakeIsWrittenWhenThereIsRoom) {
    LastGood kept(folder());
    ASSERT_TRUE(keep(kept, {{"a", "1"}, {"b", "1"}}, {}));
    {
        const test::FullDisk full;
        EXPECT_FALSE(keep(kept, {{"a", "2"}, {"b", "1"}}, {}));
        EXPECT_FALSE(keep(kept, {{"a", "2"}, {"b", "1"}}, {})) << "it is not on the disk yet";
        EXPECT_FALSE(keep(kept, {{"b", "1"}}, {"a"})) << "nor is it when its file has errors now";
    }
    ASSERT_TRUE(keep(kept, {{"b", "1"}}, {"a"}));
    EXPECT_EQ(text("a"), "2");
    EXPECT_EQ(text("b"), "1");
}

TEST_F(LastGoodTest, WhatAFullDiskDidNotTakeIsWrittenAlsoWithoutAReload) {
    LastGood kept(folder());
    ASSERT_TRUE(keep(kept, {{"a", "1"}, {"b", "1"}}, {}));
    {
        const test::FullDisk full;
        EXPECT_FALSE(keep(kept, {{"a", "2"}}, {"b"}));
        EXPECT_FALSE(write(kept));
    }
    ASSERT_TRUE(write(kept));
    EXPECT_EQ(text("a"), "2");
    EXPECT_EQ(text("b"), "1");
}

TEST_F(LastGoodTest, AStepWritesOneFileAndALaterKeepingCountsInstead) {
    std::map<std::string, std::string> many;
    for (int i = 0; i < 100; ++i)
        many["policy" + std::to_string(i)] = "1";
    LastGood kept(folder());
    kept.keep(many, {});
    int steps = 1;
    for (; !kept.step([] { return true; }); ++steps)
        ASSERT_EQ(std::distance(fs::directory_iterator(folder()), {}), steps);
    EXPECT_EQ(steps, 101);
    many.erase("policy50");
    many["policy10"] = "2";
    kept.keep(many, {});
    EXPECT_FALSE(kept.step([] { return true; }));
    many["policy0"] = "2";
    ASSERT_TRUE(keep(kept, many, {}));
    EXPECT_EQ(text("policy0"), "2") << "which had been looked at in the keeping before";
    EXPECT_EQ(text("policy10"), "2");
    EXPECT_EQ(text("policy50"), "none");
}

class OthersLastGood : public LastGoodTest {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_FAIL() << "needs root to make files of another user";
        ASSERT_TRUE(keep(kept_, {{"a", "1"}, {"gone", "1"}}, {}));
    }
    void expect_refused(const std::string& why) {
        const auto found = LastGood(folder()).find("a");
        ASSERT_FALSE(found);
        EXPECT_NE(found.error().to_string().find(why), std::string::npos) << found.error().to_string();
        const auto kept = keep(kept_, {{"a", "2"}}, {});
        ASSERT_FALSE(kept);
        EXPECT_NE(kept.error().to_string().find(why), std::string::npos) << kept.error().to_string();
        EXPECT_TRUE(fs::exists(folder() + "/gone.yaml")) << "nothing there is touched";
        EXPECT_EQ(kept_.find("a").value()->text, "2") << "memory has it";
    }
    static constexpr unsigned stranger = 65534;
    LastGood kept_{folder()};
};

TEST_F(OthersLastGood, InAFolderThatEverybodyCanWriteToIsRefused) {
    for (const auto mode : {0777U, 01777U, 0775U}) {
        ASSERT_EQ(::chmod(folder().c_str(), mode), 0);
        expect_refused("can write to it");
    }
    ASSERT_EQ(::chmod(folder().c_str(), 0755), 0);
    ASSERT_TRUE(keep(kept_, {{"a", "2"}}, {}));
    EXPECT_EQ(text("a"), "2") << "the folder was mended";
}

TEST_F(OthersLastGood, InAFolderOfAnotherUserIsRefused) {
    ASSERT_EQ(::chown(folder().c_str(), stranger, stranger), 0);
    expect_refused("belongs to user 65534");
}

TEST_F(OthersLastGood, BehindALinkToAFolderOfAnotherUserIsRefused) {
    fs::rename(folder(), tree_.path("theirs"));
    ASSERT_EQ(::chown(tree_.path("theirs").c_str(), stranger, stranger), 0);
    tree_.link("last-good", "theirs");
    expect_refused("belongs to user 65534");
}

TEST_F(OthersLastGood, InAFileOfAnotherUserOrALinkIsRefusedAndReplaced) {
    const auto path = folder() + "/a.yaml";
    ASSERT_EQ(::chown(path.c_str(), stranger, stranger), 0);
    EXPECT_EQ(text("a"), "refused");
    ASSERT_TRUE(keep(kept_, {{"a", "1"}, {"gone", "1"}}, {}));
    EXPECT_EQ(text("a"), "1");
    fs::rename(path, tree_.path("elsewhere"));
    fs::create_symlink(tree_.path("elsewhere"), path);
    EXPECT_EQ(text("a"), "refused");
    ASSERT_TRUE(keep(kept_, {{"a", "1"}, {"gone", "1"}}, {}));
    EXPECT_EQ(text("a"), "1");
    EXPECT_FALSE(fs::is_symlink(path));
}

TEST_F(LastGoodTest, WithoutAFolderNothingIsWritten) {
    LastGood kept;
    ASSERT_TRUE(keep(kept, {{"a", "1"}}, {}));
    EXPECT_EQ(kept.find("a").value()->text, "1");
    EXPECT_TRUE(fs::is_empty(tree_.path()));
}

} // namespace
} // namespace affinityd::state
