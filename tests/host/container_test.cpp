// SPDX-License-Identifier: Apache-2.0
#include "host/self.hpp"
#include "support/tree.hpp"

#include <string>

#include <gtest/gtest.h>

namespace affinityd::host {
namespace {

bool is_container_with(const char* file, const std::string& text) {
    const test::Tree tree;
    tree.file("proc/1/comm", "init\n");
    tree.file("sys/kernel/x", "");
    if (*file != 0) tree.file(file, text);
    const auto root = Root::open(tree.path());
    EXPECT_TRUE(root);
    return root && is_container(*root);
}

TEST(Container, WhatProcessOneHasTellsOfOne) {
    const std::string end(1, '\0');
    EXPECT_TRUE(is_container_with("proc/1/environ", "PATH=/bin" + end + "container=podman" + end));
    EXPECT_TRUE(
        is_container_with("proc/1/mountinfo",
                          "9 1 8:1 /var/lib/docker/containers/5c/hosts /etc/hosts rw - ext4 /dev/sda rw\n"));
    EXPECT_FALSE(is_container_with("proc/1/environ", "PATH=/bin" + end + "my_container=x" + end));
    EXPECT_FALSE(is_container_with("proc/1/mountinfo", "9 1 8:1 / / rw - ext4 /dev/sda rw\n"));
    EXPECT_FALSE(is_container_with("", ""));
}

} // namespace
} // namespace affinityd::host
