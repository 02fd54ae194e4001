// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "measure/output.hpp"
#include "measure/run.hpp"

#include <string>
#include <vector>

namespace affinityd::measure {

/// A measuring program in a unit of its own, which the service manager starts for a connection to
/// affinity-measure.socket: it has no privileges, and the daemon needs none to start it. The run ends with
/// the connection, and so with this object. Knows no event loop: the owner waits for output().
class UnitRun {
  public:
    /// Asks for a run with these options of affinity-ttcp(1). ENOENT and ECONNREFUSED: nobody listens at
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
