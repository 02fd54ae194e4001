// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "control/request.hpp"

#include <functional>

namespace affinityd::control {

/// Carries requests out and answers them in full: for callers whose right to that has been checked.
class CommandRunner {
  public:
    /// `measure` starts a measurement now; an Error if one is running or it cannot be started.
    CommandRunner(app::Commands& commands, std::function<Result<void>()> measure)
        : commands_(commands), measure_(std::move(measure)) {}

    void run(Request request);
    /// Carries out a method that only reads, for whoever passes the answer on.
    void read(Method method, const std::string& argument, app::OwnedAnswer answer);

  private:
    app::Commands& commands_;
    std::function<Result<void>()> measure_;
};

} // namespace affinityd::control
