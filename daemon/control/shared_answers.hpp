// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "control/call.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

namespace affinityd::control {

/// Answers that those who ask the same question within a short time share, each without what belongs to
/// others, so that to answer costs a bounded share of the time, whoever asks how often.
class SharedAnswers {
  public:
    struct Terms {
        /// An answer is used `share` times as long as it took to work out, within these limits.
        int share = 20;
        std::chrono::milliseconds shortest_use{1000}, longest_use{30'000};
        /// Shorter answers cost little: they are not kept once they are there. In bytes.
        std::size_t least_bytes = 0;
        std::size_t most_questions = 64; ///< kept or under way
        std::size_t most_waiting = 64;   ///< callers, for one answer
        double builds_per_second = 10;   ///< of all questions together, in the mean
        double builds_at_once = 20;
    };
    /// `event` must outlive this. The defaults are for callers without privilege, who may be many and mean
    /// ill.
    SharedAnswers(sd_event* event, const Terms& terms);
    SharedAnswers(const SharedAnswers&) = delete;
    SharedAnswers& operator=(const SharedAnswers&) = delete;
    ~SharedAnswers();

    /// Works a question out; may answer later.
    using Build = std::function<void(app::OwnedAnswer)>;
    /// Replies to the call, now or when the answer is there. `key` names the question: equal keys share an
    /// answer. `user` has no value for the
    /// privileged, who read all of it. What exceeds the terms is refused with
    /// LimitsExceeded.
    void ask(const std::string& key, const Build& build, std::optional<uid_t> user, Call call);

  private:
    class State;
    /// Shared with answers that are still under way, which may come after the end of this.
    std::shared_ptr<State> state_;
};

} // namespace affinityd::control
