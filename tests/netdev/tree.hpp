// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"
#include "netdev/reader.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace affinityd::netdev {

/// A small recorded machine that goes with the test.
class Tree {
  public:
    Tree() {
        std::string name = (std::filesystem::temp_directory_path() / "affinityd-nic-XXXXXX").string();
        if (::mkdtemp(name.data()) != nullptr) top_ = name;
    }
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;
    ~Tree() {
        if (!top_.empty()) std::filesystem::remove_all(top_);
    }

    void put(const std::string& path, std::string_view text) const {
        std::filesystem::create_directories((top_ / path).parent_path());
        std::ofstream(top_ / path) << text;
    }
    void link(const std::string& path, const std::string& target) const {
        std::filesystem::create_directories((top_ / path).parent_path());
        std::filesystem::create_symlink(target, top_ / path);
    }
    void folder(const std::string& path) const { std::filesystem::create_directories(top_ / path); }
    [[nodiscard]] std::string path() const { return top_.string(); }

    [[nodiscard]] std::vector<Nic> nics() const {
        const auto root = host::Root::open(path());
        if (!root) return {};
        return read_nics(*root).value_or(std::vector<Nic>());
    }

  private:
    std::filesystem::path top_;
};

} // namespace affinityd::netdev
