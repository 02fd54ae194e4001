// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"
#include "host/root.hpp"
#include "locality/locality.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

struct bpf_program;

namespace affinityd::steer {

/// Descriptors that systemd keeps for the daemon while it is restarted, by name; it closes them when the unit
/// stops. Without systemd nothing is kept. Source: sd_pid_notify_with_fds(3), FileDescriptorStoreMax= in
/// systemd.service(5).
class Kept {
  public:
    /// Takes what a former daemon has left, from the environment.
    static Kept inherited();
    /// A descriptor of that name; -1: there is none.
    [[nodiscard]] int find(const std::string& name) const;
    [[nodiscard]] bool is_empty() const { return fds_.empty(); }
    /// The network namespaces for which something is kept.
    [[nodiscard]] std::set<std::uint64_t> spaces() const;
    /// Has systemd keep a duplicate.
    void store(const std::string& name, int fd);
    /// Closes it, and has systemd close it.
    void remove(const std::string& name);
    void remove_all();

  private:
    std::map<std::string, host::Fd> fds_;
};

/// A thread that took connections from a listener, or reads a socket of UDP.
struct Taker {
    std::uint64_t listener = 0; ///< its cookie
    int process = 0, thread = 0;
    std::uint64_t taken = 0;
};

/// Counts each read of a TCP socket in the kernel, by a BPF program at the tracepoint
/// tcp:tcp_rcv_space_adjust and, if wanted and where the kernel has it (6.3), sock:sock_recv_length for all
/// that is not TCP: that one is called for each read of TCP, too, and costs a busy server some percent.
/// Counting lasts from open() to the end of the object. Source: reads.bpf.c.
class Reads {
  public:
    struct Options {
        bool with_others = false;
        bool with_takers =
            false;            ///< also who takes connections from which marked listener, and new listeners
        Kept* kept = nullptr; ///< what a former daemon has left; null: nothing
    };
    /// An Error says why it cannot be: not built in, no BTF, no permission, another PID namespace.
    static Result<Reads> open(const host::Root& root, const Options& options);

    /// False: TCP only (before Linux 6.3).
    [[nodiscard]] bool has_other_protocols() const;
    /// The processes that have read up to now, with the name of a thread of each.
    [[nodiscard]] Result<std::map<int, std::string>> readers() const;
    /// Counts since the last time: counts, lost and in_softirq.
    [[nodiscard]] Result<void> take(locality::ReadCounts& seen) const;

    /// With takers only:
    [[nodiscard]] std::vector<Taker> takers() const; ///< all that are known
    [[nodiscard]] int event_fd() const;              ///< readable when a listener that matters was opened
    struct Opened {
        std::set<int> processes{}; ///< that opened listeners that matter
        bool is_paused = false;    ///< there was no room to note one: its port is left to the kernel for now
    };
    Opened take_events();
    /// Listeners that these processes open from now on are marked, and no others'.
    void mark_listeners_of(const std::set<int>& processes) const;
    /// Tells from now on who reads marked sockets of UDP, too, or does so no more. Each read of any socket
    /// pays for that, so callers want it only until they know. Needs has_other_protocols().
    void note_readers(bool wanted);
    /// The program that goes through the descriptors of a process: for Lanes::mark().
    [[nodiscard]] bpf_program* walk(bool marks_datagrams) const;
    /// A table that other programs share: "marked", "origins", "services", "strangers".
    [[nodiscard]] int table(const std::string& name) const;

  private:
    struct Program;
    explicit Reads(std::shared_ptr<Program> program) : program_(std::move(program)) {}
    std::shared_ptr<Program> program_;
};

} // namespace affinityd::steer
