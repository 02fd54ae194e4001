// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "control/call.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

namespace affinityd::control {

/// Answers that those who ask the same question within a short time share, each without what belongs to
/// others.
class SharedAnswers {
  public:
    /// `kept`: how long an answer is used once it is there. `event` must outlive this.
    SharedAnswers(sd_event* event, std::chrono::milliseconds kept);
    SharedAnswers(const SharedAnswers&) = delete;
    SharedAnswers& operator=(const SharedAnswers&) = delete;
    ~SharedAnswers();

    /// Works a question out; may answer later.
    using Build = std::function<void(app::OwnedAnswer)>;
    /// Replies to the call, now or when the answer is there. `key` names the question: equal keys share an
    /// answer. `user` has no value for the privileged, who read all of it.
    void ask(const std::string& key, const Build& build, std::optional<uid_t> user, Call call);

  private:
    class State;
    /// Shared with answers that are still under way, which may come after the end of this.
    std::shared_ptr<State> state_;
};

} // namespace affinityd::control
