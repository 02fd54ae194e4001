// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "locality/locality.hpp"
#include "steer/kept.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::steer {

/// A thread that took connections from a listener, since the last time that this was asked.
struct Taker {
    std::uint64_t listener = 0; ///< its cookie
    int process = 0, thread = 0;
    std::uint64_t taken = 0;
};

/// Listeners that began to listen.
struct Opened {
    bool any = false;
    bool paused = false; ///< there was no room to note one: its port is left to the kernel until it is set
};

/// Counts each read of a socket in the kernel, by a BPF program at the tracepoint tcp:tcp_rcv_space_adjust
/// and, if wanted and where the kernel has it (6.3), sock:sock_recv_length for all that is not TCP: that one
/// is called for each read of TCP, too, and costs a busy server some percent. It counts from open() to its
/// end. Source: reads.bpf.c.
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

    /// False: TCP only.
    [[nodiscard]] bool has_other_protocols() const;
    /// The processes that have read up to now, with the name of a thread of each.
    [[nodiscard]] Result<std::map<int, std::string>> readers() const;
    /// Counts since the last time: counts, lost and in_softirq.
    [[nodiscard]] Result<void> take(locality::ReadCounts& seen) const;

    /// With takers only:
    [[nodiscard]] std::vector<Taker> takers() const; ///< all that are known
    [[nodiscard]] int event_fd() const;              ///< readable when a listener that matters was opened
    Opened take_events();
    /// Listeners that these processes open from now on are marked, and no others'.
    void follow(const std::set<int>& processes) const;
    /// A table that other programs share: "marked", "origins", "services", "strangers".
    [[nodiscard]] int table(const std::string& name) const;

  private:
    struct Program;
    explicit Reads(std::shared_ptr<Program> program) : program_(std::move(program)) {}
    std::shared_ptr<Program> program_;
};

} // namespace affinityd::steer
