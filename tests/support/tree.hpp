// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <unistd.h>

namespace affinityd::test {

/// A folder for one test, removed with everything below it when the test ends, even if it fails. The folder
/// is in memory where possible, like /run, which these tests imitate: they are not about slow disks.
class Tree {
  public:
    Tree() {
        const std::filesystem::path memory = "/dev/shm";
        const auto place =
            ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
        std::string name = (place / "affinityd-test-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
        path_ = name;
    }
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;
    ~Tree() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] std::string path(std::string_view name = {}) const { return (path_ / name).string(); }

    /// Writes a file, and makes the folders above it.
    void file(std::string_view name, std::string_view text) const {
        const auto target = path_ / name;
        std::filesystem::create_directories(target.parent_path());
        std::ofstream(target, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
    }
    void folder(std::string_view name) const { std::filesystem::create_directories(path_ / name); }
    void link(std::string_view name, const std::string& target) const {
        const auto link = path_ / name;
        std::filesystem::create_directories(link.parent_path());
        std::filesystem::create_symlink(target, link);
    }

  private:
    std::filesystem::path path_;
};

} // namespace affinityd::test
