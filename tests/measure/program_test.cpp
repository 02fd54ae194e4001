// SPDX-License-Identifier: Apache-2.0
#include "measure/program.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace affinityd::measure {
namespace {

namespace fs = std::filesystem;

class FindTtcp : public ::testing::Test {
  protected:
    FindTtcp() {
        std::string name = (fs::temp_directory_path() / "find-ttcp-XXXXXX").string();
        root_ = ::mkdtemp(name.data());
    }
    ~FindTtcp() override { fs::remove_all(root_); }
    void put(const std::string& path) const {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << "#!/bin/sh\n";
        fs::permissions(root_ / path, fs::perms::owner_all);
    }
    /// The path that a program in `folder` finds, below the test's root; "" for no value.
    [[nodiscard]] std::string from(const std::string& folder) const {
        fs::create_directories(root_ / folder);
        const auto found = find_ttcp((root_ / folder).string() + "/");
        return found ? fs::canonical(*found).lexically_relative(fs::canonical(root_)).string() : "";
    }
    fs::path root_;
};

TEST_F(FindTtcp, InstalledProgramsFindTheInstalledOne) {
    put("usr/bin/affinity-ttcp");
    EXPECT_EQ(from("usr/bin"), "usr/bin/affinity-ttcp");
    EXPECT_EQ(from("usr/sbin"), "usr/bin/affinity-ttcp");
    EXPECT_EQ(from("usr/libexec/affinityd"), "usr/bin/affinity-ttcp");
}

TEST_F(FindTtcp, BuiltProgramsFindTheBuiltOne) {
    put("build/tools/affinity-ttcp/affinity-ttcp");
    EXPECT_EQ(from("build/daemon"), "build/tools/affinity-ttcp/affinity-ttcp");
    EXPECT_EQ(from("build/tools/affinityctl"), "build/tools/affinity-ttcp/affinity-ttcp");
}

TEST_F(FindTtcp, AFolderOrAFileWithoutExecutePermissionIsNotTaken) {
    fs::create_directories(root_ / "a/affinity-ttcp");
    EXPECT_EQ(from("a"), "");
    put("b/affinity-ttcp");
    fs::permissions(root_ / "b/affinity-ttcp", fs::perms::owner_read);
    EXPECT_EQ(from("b"), "");
}

TEST_F(FindTtcp, WithoutAFolderTheWorkingFolderIsNotSearched) {
    put("affinity-ttcp");
    const auto before = fs::current_path();
    fs::current_path(root_);
    EXPECT_FALSE(find_ttcp(""));
    fs::current_path(before);
}

} // namespace
} // namespace affinityd::measure
