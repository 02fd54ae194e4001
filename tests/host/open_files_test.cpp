// SPDX-License-Identifier: Apache-2.0
#include "host/open_files.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::host {
namespace {

/// What the soft limit is in a child that begins with these limits and asks for more.
int soft_limit_after(rlim_t soft, rlim_t hard) {
    int ends[2];
    if (::pipe(ends) != 0) return -1;
    const int child = ::fork();
    if (child == 0) {
        rlimit limit{soft, hard};
        int told = -1;
        if (::setrlimit(RLIMIT_NOFILE, &limit) == 0 && allow_many_open_files() == 0 &&
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

TEST(OpenFiles, ALimitThatIsHighEnoughStays) { EXPECT_EQ(soft_limit_after(900, 900), 900); }

TEST(OpenFiles, MoreThanIsOfUseIsNotAskedFor) {
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_EQ(soft_limit_after(64, limit.rlim_max),
              static_cast<int>(std::min<rlim_t>(limit.rlim_max, 65'536)));
}

} // namespace
} // namespace affinityd::host
