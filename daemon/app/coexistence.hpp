// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"
#include "app/log.hpp"
#include "app/world.hpp"
#include "coexist/other_writers.hpp"
#include "coexist/peer_daemons.hpp"
#include "inventory/process_scan.hpp"
#include "state/journal.hpp"

namespace affinityd::app {

/// Who else sets masks here, and what is done about it: coexist's part of a pass.
class Coexistence {
  public:
    Coexistence(const host::Root& root, const Current& current, const state::Journal& journal,
                coexist::OtherWriters::Places places, Log& log);

    void begin_pass();
    /// True for a process of root's that writes masks too, and is not known yet.
    [[nodiscard]] bool concerns(const inventory::ProcessScan& process) const;
    /// A process of the pass, whether or not a policy wants it.
    void see(const inventory::ProcessScan& process);
    /// All were seen: irqbalance is told to leave the interrupts under policy alone.
    void end_pass();
    /// Goes on with what end_pass() began. True: there is nothing left but irqbalance's answer.
    [[nodiscard]] bool step(const OutOfTime& out_of_time);
    /// A person asked for everything anew.
    void look_again() { writers_.look_again(); }
    /// irqbalance gets its own list back. Over when is_talking() is false.
    void stop() { writers_.stop(); }

    /// The conversation with irqbalance: readable when handle() has something to do.
    [[nodiscard]] int fd() const { return writers_.fd(); }
    void handle();
    [[nodiscard]] bool is_talking() const { return writers_.is_talking(); }

    [[nodiscard]] std::vector<coexist::OtherWriter> other_writers() const { return writers_.list(); }
    [[nodiscard]] const std::vector<coexist::PeerDaemon>& peers() const { return peers_.list(); }

  private:
    void log_peers();
    const Current& current_;
    const state::Journal& journal_;
    Log& log_;
    bool acts_;
    coexist::OtherWriters writers_;
    coexist::PeerDaemons peers_;
};

} // namespace affinityd::app
