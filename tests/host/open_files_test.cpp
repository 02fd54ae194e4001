// SPDX-License-Identifier: Apache-2.0
#include "host/self.hpp"

#include <cstdint>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::host {
namespace {

/// The soft limit in a child that begins with these limits and asks for `most`.
int soft_limit_after(rlim_t soft, rlim_t hard, std::uint64_t most = 65'536) {
    int ends[2];
    if (::pipe(ends) != 0) return -1;
    const int child = ::fork();
    if (child == 0) {
        rlimit limit{soft, hard};
        int told = -1;
        if (::setrlimit(RLIMIT_NOFILE, &limit) == 0 && allow_many_open_files(most) == 0 &&
            ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max == hard)
            told = static_cast<int>(limit.rlim_cur);
        ::_exit(::write(ends[1], &told, sizeof told) == sizeof told ? 0 : 1);
    }
    ::close(ends[1]);
    int told = -1;
    if (::read(ends[0], &told, sizeof told) != sizeof told) told = -1;
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    return told;
}

TEST(OpenFiles, TheSoftLimitRisesToTheHardOne) { EXPECT_EQ(soft_limit_after(64, 900), 900); }

TEST(OpenFiles, MoreThanIsOfUseIsNotAskedFor) { EXPECT_EQ(soft_limit_after(64, 900, 500), 500); }

TEST(OpenFiles, ALimitThatIsHigherStays) { EXPECT_EQ(soft_limit_after(700, 900, 500), 700); }

} // namespace
} // namespace affinityd::host
