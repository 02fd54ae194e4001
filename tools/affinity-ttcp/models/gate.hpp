// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"

#include <cstddef>

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

} // namespace affinityd::ttcp
