// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace affinityd::test {

/// Lowers this process's limit of open files so that the next open fails with EMFILE, as long as it lives.
/// Descriptors above the first free number stay usable.
class NoDescriptorsLeft {
  public:
    /// `spare`: how many more may be opened before that.
    explicit NoDescriptorsLeft(unsigned spare = 0) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        ::close(next);
        rlimit low = before_;
        low.rlim_cur = static_cast<rlim_t>(next) + spare;
        ::setrlimit(RLIMIT_NOFILE, &low);
    }
    NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
    NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;
    ~NoDescriptorsLeft() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  private:
    rlimit before_{};
};

} // namespace affinityd::test
