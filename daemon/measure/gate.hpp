// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"

#include <cstddef>

namespace affinityd::measure {

/// Holds forked processes until all have come and their maker opens it, so that they begin together.
class Gate {
  public:
    [[nodiscard]] static Result<Gate> make();

    /// In a child: says that it has come, then waits until the gate is open, or its maker has gone.
    void wait();
    /// In a child that does not wait, so that it does not hold the gate for others.
    void pass_by();
    /// For the maker: readable when children have come.
    [[nodiscard]] int arrivals() const { return arrivals_.get(); }
    [[nodiscard]] std::size_t count_arrivals(); ///< that were not counted yet
    void open() { holder_.reset(); }

  private:
    Gate(host::Fd arrivals, host::Fd bell, host::Fd barrier, host::Fd holder)
        : arrivals_(std::move(arrivals)), bell_(std::move(bell)), barrier_(std::move(barrier)),
          holder_(std::move(holder)) {}
    host::Fd arrivals_, bell_;  ///< a pipe: a byte for each that came
    host::Fd barrier_, holder_; ///< a pipe that ends when the last holder closes its end
};

} // namespace affinityd::measure
