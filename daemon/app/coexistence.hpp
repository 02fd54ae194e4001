// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/load.hpp"
#include "app/log.hpp"
#include "app/work.hpp"
#include "coexist/other_writers.hpp"
#include "inventory/process_scan.hpp"

namespace affinityd::app {

/// Who else sets masks here, and what is done about it: coexist's part of a pass.
class Coexistence {
  public:
    Coexistence(const host::Root& root, const Current& current, coexist::OtherWriters::Places places,
                Log& log);

    void begin_pass() { writers_.begin_pass(); }
    /// True for a process of root's that writes masks too, and is not known yet.
    [[nodiscard]] bool concerns(const inventory::ProcessScan& process) const;
    /// A process of the pass, whether or not a policy wants it.
    void see(const inventory::ProcessScan& process);
    /// All were seen: irqbalance is told to leave the interrupts under policy alone.
    void end_pass();
    /// irqbalance gets its own list back. Over when is_talking() is false.
    void stop() { writers_.stop(); }

    /// The conversation with irqbalance: readable when handle() has something to do.
    [[nodiscard]] int fd() const { return writers_.fd(); }
    void handle();
    [[nodiscard]] bool is_talking() const { return writers_.is_talking(); }

    [[nodiscard]] std::vector<coexist::OtherWriter> other_writers() const { return writers_.list(); }

  private:
    const Current& current_;
    Log& log_;
    coexist::OtherWriters writers_;
};

} // namespace affinityd::app
