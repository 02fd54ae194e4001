// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "measure/output.hpp"
#include "measure/run.hpp"

#include <string>
#include <vector>

#include <signal.h>
#include <sys/types.h>

namespace affinityd::measure {

/// A measuring program in a process group of its own. Knows no event loop: the owner waits for output() and
/// for the exit of pid(), and reports what it sees. Destroying it kills and reaps what still runs. Lowering
/// its privileges, and dying with its parent, is the program's own work (measure/lower_self.hpp).
class Child {
  public:
    /// Executes `command`; the path comes first. Returns once the program is executed (posix_spawn(3)), which
    /// copies nothing of the caller's memory, but waits until the kernel has opened the program; an error if
    /// it cannot be. The program begins with the caller's privileges: it must be one that lowers itself.
    [[nodiscard]] static Result<Child> start(const std::vector<std::string>& command);
    Child(Child&& other) noexcept;
    Child& operator=(Child&& other) noexcept;
    ~Child();

    [[nodiscard]] pid_t pid() const { return pid_; }
    /// Readable when the program has printed something; non-blocking.
    [[nodiscard]] int output() const { return output_.descriptor(); }
    /// Takes what can be read now. False once nothing more will come; the exit is told apart from that.
    bool drain() { return output_.drain(); }
    /// Whatever it prints from now on is dropped.
    void close_output() { output_.close(); }
    /// Kills the whole group because its time is over; ended() then says so.
    void time_out();
    /// `info` is what waitid(2) with WNOWAIT reported. The caller, or its event loop, reaps the process; this
    /// object then owns none.
    [[nodiscard]] Run ended(const siginfo_t& info);

  private:
    Child(pid_t pid, host::Fd output) : pid_(pid), output_(std::move(output)) {}
    void end();

    pid_t pid_ = 0; ///< 0: none to be ended
    bool timed_out_ = false;
    Output output_;
};

} // namespace affinityd::measure
