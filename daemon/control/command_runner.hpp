// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "control/request.hpp"
#include "control/shared_answers.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace affinityd::control {

/// Carries requests out and answers them in full: for callers whose right to that has been checked.
/// Callers who ask while an answer is worked out share it. No answer was begun before the end of the last
/// request that changed something.
class CommandRunner {
  public:
    /// Measures now; the answer is an Error if a measurement is running or none can be started.
    using Measure = std::function<void(app::Answer answer, app::Until until)>;
    /// `event` and `commands` must outlive this.
    CommandRunner(sd_event* event, app::Commands& commands, Measure measure);

    void run(Request request);
    /// Carries out a method that only reads, for whoever passes the answer on.
    void read(Method method, const std::string& argument, app::OwnedAnswer answer);

  private:
    void change(Request request);
    app::Commands& commands_;
    Measure measure_;
    SharedAnswers answers_;
    /// How many requests to change something began or ended. Shared with those that will end after this.
    std::shared_ptr<std::uint64_t> changes_ = std::make_shared<std::uint64_t>(0);
};

} // namespace affinityd::control
