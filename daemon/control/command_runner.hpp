// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "control/request.hpp"
#include "control/shared_answers.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

namespace affinityd::control {

/// Carries requests out and answers them in full: for callers whose right to that has been checked.
///
/// Long answers are kept for a moment, so that programs that watch the daemon cost it little however many
/// they are. No answer is older than the end of the last request that changed something.
class CommandRunner {
  public:
    /// Kept for eight times as long as they took to work out, a second at most. 64 KiB are about two hundred
    /// threads; to tell of fewer takes no time worth saving.
    static constexpr SharedAnswers::Terms terms = {.share = 8,
                                                   .shortest_use = std::chrono::milliseconds{0},
                                                   .longest_use = std::chrono::milliseconds{1000},
                                                   .least_bytes = 65'536,
                                                   .most_questions = std::numeric_limits<std::size_t>::max(),
                                                   .most_waiting = std::numeric_limits<std::size_t>::max(),
                                                   .builds_per_second =
                                                       std::numeric_limits<double>::infinity(),
                                                   .builds_at_once = std::numeric_limits<double>::infinity()};

    /// Measures now; the answer is an Error if a measurement is running or none can be started.
    using Measure = std::function<void(app::Answer answer, app::Until until)>;
    /// `event` and `commands` must outlive this.
    CommandRunner(sd_event* event, app::Commands& commands, Measure measure,
                  const SharedAnswers::Terms& answers);

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
