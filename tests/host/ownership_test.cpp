// SPDX-License-Identifier: Apache-2.0
#include "../support/tree.hpp"
#include "host/file.hpp"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::host {
namespace {

namespace fs = std::filesystem;

constexpr uid_t stranger = 65534;

class Ownership : public testing::Test {
  protected:
    Ownership() {
        for (const auto& folder : {"a", "a/b"}) {
            tree_.folder(folder);
            set_mode(folder, 0755);
        }
        tree_.file("a/b/file", "text");
        set_mode("a/b/file", 0644);
    }
    void set_mode(const std::string& name, mode_t mode) const {
        ASSERT_EQ(::chmod(tree_.path(name).c_str(), mode), 0);
    }
    void give_away(const std::string& name) const {
        ASSERT_EQ(::lchown(tree_.path(name).c_str(), stranger, stranger), 0) << "this test needs root";
    }
    /// "": it passes.
    [[nodiscard]] std::string fault(const std::string& name) const {
        const auto checked = check_ownership(tree_.path(name));
        return checked ? "" : checked.error().to_string();
    }
    [[nodiscard]] std::string line(const std::string& component, const std::string& what,
                                   const std::string& name) const {
        return tree_.path(component) + ": " + what +
               (component == name ? ": refused" : ": " + tree_.path(name) + " is refused");
    }
    test::Tree tree_;
};

TEST_F(Ownership, WhatIsOursPassesAndSoDoesWhatIsNotThere) {
    for (const auto& name :
         {"a", "a/b", "a/b/", "a/../a/./b/file", "a/b/none", "a/none/at/all", "a/b/file/below"})
        EXPECT_EQ(fault(name), "") << name;
    EXPECT_TRUE(check_ownership("/dev/null"));
    EXPECT_TRUE(check_ownership("."));
}

TEST_F(Ownership, AStrangersFileOrFolderIsRefused) {
    for (const std::string name : {"a", "a/b", "a/b/file"}) {
        give_away(name);
        const auto text = line(name, "it belongs to user 65534, not to root", "a/b/file");
        EXPECT_EQ(fault("a/b/file"), text);
        ASSERT_EQ(::chown(tree_.path(name).c_str(), 0, 0), 0);
    }
    EXPECT_EQ(fault("a/b/file"), "");
}

TEST_F(Ownership, WhatOthersCanWriteToIsRefused) {
    for (const std::string name : {"a", "a/b", "a/b/file"}) {
        const mode_t usual = name == "a/b/file" ? 0644 : 0755;
        set_mode(name, usual | S_IWGRP);
        EXPECT_EQ(fault("a/b/file"), line(name, "its group can write to it", "a/b/file"));
        set_mode(name, usual | S_IWOTH);
        EXPECT_EQ(fault("a/b/file"), line(name, "any user can write to it", "a/b/file"));
        set_mode(name, usual);
    }
}

TEST_F(Ownership, AStickyFolderMayBeOnTheWayButNotTheEnd) {
    set_mode("a", 01777);
    EXPECT_EQ(fault("a/b/file"), "");
    EXPECT_EQ(fault("a"), line("a", "any user can write to it", "a"));
}

TEST_F(Ownership, TheEndOfALinkCountsWithItsFolder) {
    tree_.folder("links");
    set_mode("links", 0755);
    tree_.link("links/absolute", tree_.path("a/b/file"));
    tree_.link("links/relative", "../a/b/file");
    tree_.link("links/of-folder", "../a");
    const auto all = {"links/absolute", "links/relative", "links/of-folder/b/file"};
    for (const std::string link : all)
        EXPECT_EQ(fault(link), "") << link;
    set_mode("a/b", 0777);
    for (const std::string link : all)
        EXPECT_EQ(fault(link), line("a/b", "any user can write to it", link)) << link;
    set_mode("a/b", 0755);
    give_away("a/b/file");
    for (const std::string link : all)
        EXPECT_EQ(fault(link), line("a/b/file", "it belongs to user 65534, not to root", link)) << link;
}

TEST_F(Ownership, AStrangersLinkIsRefusedWhereverItLeads) {
    tree_.folder("sticky");
    set_mode("sticky", 01777);
    tree_.link("sticky/link", tree_.path("a/b/file"));
    EXPECT_EQ(fault("sticky/link"), "");
    give_away("sticky/link");
    EXPECT_EQ(fault("sticky/link"),
              line("sticky/link", "it belongs to user 65534, not to root", "sticky/link"));
}

TEST_F(Ownership, ARingOfLinksIsRefused) {
    tree_.link("a/one", "two");
    tree_.link("a/two", "one");
    EXPECT_NE(fault("a/one").find("too many links"), std::string::npos);
}

} // namespace
} // namespace affinityd::host
