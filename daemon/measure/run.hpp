// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"
#include "measure/result.hpp"

#include <string>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/types.h>

namespace affinityd::measure {

/// How a measuring program ended.
struct Run {
    std::string output;              ///< what it printed: its report, or ""
    Outcome outcome = Outcome::done; ///< of the program itself; counts only where there is no report
    std::string fault;               ///< for a person; "" with Outcome::done
};

/// The output of a measuring program, by a pipe or a connection that does not block.
class Output {
  public:
    explicit Output(host::Fd source) : source_(std::move(source)) {}

    [[nodiscard]] int descriptor() const { return source_.get(); }
    /// Takes what can be read now, 64 KiB at most. False once no more will come, or after 256 KiB in all.
    bool drain();
    /// A program that writes more gets SIGPIPE.
    void close() { source_ = {}; }
    /// All that came.
    [[nodiscard]] std::string take() { return std::move(text_); }

  private:
    host::Fd source_;
    std::string text_;
};

/// A measuring program in a process group of its own. Knows no event loop: the owner waits for output() and
/// for the exit of pid(), and reports what it sees. Destroying it kills and reaps what still runs. Lowering
/// its privileges, and dying with its parent, is the program's own work (measure/program.hpp).
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

/// A measuring program in a unit of its own, which the service manager starts for a connection to
/// affinity-measure.socket: it has no privileges, and the daemon needs none to start it. The run ends with
/// the connection, and so with this object. Knows no event loop: the owner waits for output().
class UnitRun {
  public:
    /// Asks for a run with these options of affinity-ttcp(1). ENOENT and ECONNREFUSED: no process listens at
    /// `socket`.
    [[nodiscard]] static Result<UnitRun> start(const std::string& socket,
                                               const std::vector<std::string>& options);

    /// Readable when the program has printed something, and when it has ended; non-blocking.
    [[nodiscard]] int output() const { return output_.descriptor(); }
    /// Takes what can be read now. False once the program has ended.
    bool drain() { return output_.drain(); }
    /// Without a report the run has failed; the unit's log says why.
    [[nodiscard]] Run ended();

  private:
    explicit UnitRun(host::Fd connection) : output_(std::move(connection)) {}
    Output output_;
};

} // namespace affinityd::measure
