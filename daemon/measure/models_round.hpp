// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/bed.hpp"
#include "measure/models.hpp"

#include <expected>

namespace affinityd::measure {

/// What stays the same over all rounds of an experiment.
struct RoundSetup {
    bool receives = true; ///< the system under test receives; else it transmits
    double seconds = 2;
    std::size_t buffer_bytes = 65536;
    /// SO_SNDBUF and SO_RCVBUF; 0: the kernel's own sizing. A veth's ring holds 256 packets and drops the
    /// rest when its NAPI thread has to wait for a CPU: what is under way must fit in, else retransmission is
    /// what is measured.
    int socket_buffer = 131072;
    CpuSet cpus;   ///< of the system under test; what is not bound may run on all of them
    int stop = -1; ///< readable: give up
};

/// Why there is no sample.
struct RoundFault {
    Outcome outcome = Outcome::failed;
    std::string reason;
};

struct Round {
    ModelSample sample;
    std::string cycles_source; ///< for a person
};

/// Places the interrupts, then one transmission over all paths at once, each end a process of its own. All
/// processes have ended when it returns. The peers' processes are never bound.
[[nodiscard]] std::expected<Round, RoundFault> run_round(const host::Root& root, const Bed& bed,
                                                         const RoundSetup& setup, Model model);

} // namespace affinityd::measure
