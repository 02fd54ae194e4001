// SPDX-License-Identifier: Apache-2.0
#include "policy/reader.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace {

namespace fs = std::filesystem;
using namespace affinityd::policy;

class Folders : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "affinityd-folders-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        top_ = name;
        for (const auto* folder : {"vendor", "etc", "run"})
            fs::create_directory(top_ / folder);
    }
    void TearDown() override { fs::remove_all(top_); }

    void write(const fs::path& path, const std::string& text) const { std::ofstream(top_ / path) << text; }
    [[nodiscard]] std::vector<std::string> all() const {
        return {(top_ / "vendor").string(), (top_ / "etc").string(), (top_ / "run").string()};
    }
    [[nodiscard]] std::string names() const {
        const auto documents = read_folders(all());
        if (!documents) return documents.error().to_string();
        std::string text;
        for (const auto& document : *documents)
            text += fs::relative(document.path, top_).string() + " ";
        return text;
    }
    fs::path top_;
};

TEST_F(Folders, LowestPrecedenceFirstAndByNameInside) {
    write("run/a.yaml", "1");
    write("etc/b.yaml", "2");
    write("etc/a.yaml", "3");
    write("vendor/z.yaml", "4");
    EXPECT_EQ(names(), "vendor/z.yaml etc/a.yaml etc/b.yaml run/a.yaml ");
    EXPECT_EQ(read_folders(all())->at(1).text, "3");
}

TEST_F(Folders, PassesOverWhatIsNoPolicy) {
    for (const auto* name : {"etc/.hidden.yaml", "etc/a.yaml~", "etc/#a.yaml#", "etc/a.yaml.dpkg-old",
                             "etc/README", "etc/.#a.yaml"})
        write(name, "x");
    write("etc/a.yml", "kept so that the reader can complain");
    EXPECT_EQ(names(), "etc/a.yml ");
}

TEST_F(Folders, AFolderThatIsNotThereHoldsNothing) {
    fs::remove_all(top_ / "run");
    write("etc/a.yaml", "x");
    EXPECT_EQ(names(), "etc/a.yaml ");
}

TEST_F(Folders, ALinkToTheNullDeviceMasks) {
    write("vendor/a.yaml", "version: 1\nmatch: {comm: a}\n");
    fs::create_symlink("/dev/null", top_ / "etc/a.yaml");
    const auto documents = read_folders(all());
    ASSERT_TRUE(documents.has_value());
    const auto result = read_policies(*documents);
    EXPECT_TRUE(result.set.policies.empty());
    ASSERT_EQ(result.set.overrides.size(), 1U);
    EXPECT_TRUE(result.set.overrides[0].masked);
}

TEST_F(Folders, WhatCannotBeReadIsAFault) {
    fs::create_symlink("nowhere", top_ / "etc/a.yaml");
    fs::create_directory(top_ / "etc/b.yaml");
    ASSERT_EQ(::mkfifo((top_ / "etc/c.yaml").c_str(), 0600), 0); // must not wait for a writer
    write("etc/d.yaml", std::string((1U << 20) + 1, '#'));
    write("etc/e.yaml", "version: 1\nmatch: {comm: a}\n");
    const auto documents = read_folders(all());
    ASSERT_TRUE(documents);
    ASSERT_EQ(documents->size(), 5U);
    const auto result = read_policies(*documents);
    EXPECT_NE(documents->front().fault.find("a link that leads nowhere"), std::string::npos);
    EXPECT_EQ(result.set.policies.size(), 1U) << "the others do not keep it from being read";
    for (const std::string name : {"a", "b", "c", "d"}) {
        const auto path = (top_ / "etc" / (name + ".yaml")).string();
        const auto found = std::ranges::find(result.diagnostics, path,
                                             [](const auto& diagnostic) { return diagnostic.at.file; });
        ASSERT_NE(found, result.diagnostics.end()) << name;
        EXPECT_EQ(found->severity, Severity::error);
        EXPECT_EQ(found->message.find(path), std::string::npos) << "it is said once: " << found->message;
    }
}

TEST_F(Folders, AFileThatWasRemovedSinceItWasListedIsNoFault) {
    write("etc/a.yaml", "x");
    fs::create_symlink("nowhere", top_ / "etc/b.yaml");
    const auto paths = list_folders(all());
    ASSERT_TRUE(paths);
    ASSERT_EQ(paths->size(), 2U);
    fs::remove(paths->front());
    EXPECT_FALSE(read_document(paths->front()));
    const auto link = read_document(paths->back());
    ASSERT_TRUE(link) << "it is there, though it leads nowhere";
    EXPECT_NE(link->fault, "");
}

TEST_F(Folders, AFileAsFolderIsAFault) {
    write("plain", "x");
    EXPECT_FALSE(read_folders({(top_ / "plain").string()}).has_value());
}

} // namespace
