// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <functional>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd {

/// A child, ended at the latest here.
class Forked {
  public:
    explicit Forked(const std::function<void()>& life) : pid_(::fork()) {
        if (pid_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        life();
        ::_exit(0);
    }
    Forked(const Forked&) = delete;
    Forked& operator=(const Forked&) = delete;
    ~Forked() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    [[nodiscard]] int pid() const { return pid_; }

  private:
    int pid_;
};

} // namespace affinityd
