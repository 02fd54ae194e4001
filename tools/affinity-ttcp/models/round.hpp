// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/session.hpp"
#include "affinity-ttcp/engine/stream.hpp"
#include "affinity-ttcp/models/report.hpp"
#include "affinity-ttcp/models/sample.hpp"
#include "affinity-ttcp/testbed/testbed.hpp"
#include "base/error.hpp"
#include "host/fd.hpp"

#include <cstddef>
#include <expected>
#include <functional>
#include <string>
#include <vector>

namespace affinityd::ttcp {

/// Holds forked processes until all have arrived and their parent opens it, so that they begin together.
class Gate {
  public:
    [[nodiscard]] static Result<Gate> make();

    /// In a child: reports its arrival, and goes on.
    void arrive();
    /// In a child: reports its arrival, then waits until the gate is open or its parent has gone.
    void wait();
    /// For the parent: readable when children have arrived.
    [[nodiscard]] int arrivals() const { return arrivals_.get(); }
    [[nodiscard]] std::size_t count_arrivals(); ///< since the last call
    void open() { holder_.reset(); }

  private:
    Gate(host::Fd arrivals, host::Fd bell, host::Fd barrier, host::Fd holder)
        : arrivals_(std::move(arrivals)), bell_(std::move(bell)), barrier_(std::move(barrier)),
          holder_(std::move(holder)) {}
    host::Fd arrivals_, bell_;  ///< a pipe with a byte for each arrival
    host::Fd barrier_, holder_; ///< a pipe whose end of file comes when the last holder closes it
};

/// The setup of a round; it stays the same over an experiment.
struct RoundSetup {
    LoadPoint point;
    double seconds = 2;
    /// SO_SNDBUF and SO_RCVBUF; 0: the kernel's own sizing. A veth's ring holds 256 packets and drops the
    /// rest while its NAPI thread waits for a CPU. The bytes in flight must fit, or the run measures
    /// retransmission.
    int socket_buffer = 131072;
    CpuSet cpus;               ///< of the system under test; what is not bound may run on all of them
    double stall_seconds = 10; ///< without progress; then a stream is given up
    int stop = -1;             ///< readable: give up; -1: never
};

/// Why there is no sample.
struct RoundFault {
    measure::Outcome outcome = measure::Outcome::failed;
    std::string reason;
};

/// The outcome that belongs to the Error's code, with its text.
[[nodiscard]] RoundFault to_fault(const Error& error);

struct Round {
    ModelSample sample;
    std::string cycles_source; ///< for a person, as sample.hpp has them
    std::string parts_note;
};

/// Places the interrupts, then loads all paths at once, each end a process of its own. All processes
/// have ended when it returns. The peers' processes are never bound.
[[nodiscard]] std::expected<Round, RoundFault> run_round(const host::Root& root, const Testbed& testbed,
                                                         const RoundSetup& setup, Model model);

/// The ends of one round; the receivers answer with Work::answer.
struct RoundEnds {
    Ends ends;
    LatencyCounts latencies; ///< empty but with Work::answer
};

/// The figures of one round with their cost; pure. A fault if no bytes were moved.
[[nodiscard]] std::expected<Round, RoundFault> make_round(const Testbed& testbed, Work work,
                                                          const RoundEnds& ends, const RoundCosts& costs);

struct ModelsSetup {
    std::vector<LoadPoint> points{LoadPoint{}};
    std::vector<Model> models{all_models.begin(),
                              all_models.end()}; ///< the others are compared with the first
    unsigned rounds = 10;                        ///< of each model at each point
    RoundSetup round;                            ///< its point counts for nothing here
    /// With `done` 0 when the first round begins, then after each; may be empty.
    std::function<void(std::size_t done, std::size_t all)> progress;
};

/// All rounds together.
[[nodiscard]] std::size_t rounds_of(const ModelsSetup& setup);
/// How long the experiment takes on a machine that is not overloaded.
[[nodiscard]] double expected_seconds(const ModelsSetup& setup);

/// The whole experiment on a testbed: a short run that does not count, then rounds in interleaved order, each
/// round with all models of one point, then all of the next. After a fault the report still has the samples
/// of the complete rounds.
[[nodiscard]] ModelsReport run_models(const host::Root& root, const Testbed& testbed,
                                      const ModelsSetup& setup);

} // namespace affinityd::ttcp
