// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstddef>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace affinityd::test {

/// While this object exists, files cannot grow beyond `bytes`: a limit of this process makes its writes fail
/// as on a full disk.
class FullDisk {
  public:
    explicit FullDisk(std::size_t bytes = 4) {
        EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit tight{bytes, before_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
    }
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;
    ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

  private:
    rlimit before_{};
};

} // namespace affinityd::test
