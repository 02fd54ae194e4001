// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "control/call.hpp"

#include <functional>
#include <memory>
#include <string>

#include <sys/types.h>

namespace affinityd::control {

/// Answers for callers without privilege, who may be many and mean ill. Each question is worked out at most
/// once a second, and so seldom that it costs a twentieth of the time at most, whoever asks; in between, all
/// get the same value, each without what belongs to others.
class PublicAnswers {
  public:
    explicit PublicAnswers(sd_event* event);
    PublicAnswers(const PublicAnswers&) = delete;
    PublicAnswers& operator=(const PublicAnswers&) = delete;
    ~PublicAnswers();

    /// Works a question out; may answer later.
    using Build = std::function<void(app::OwnedAnswer)>;
    /// Replies to the call, now or when the answer is there. `key` names the question: equal keys share an
    /// answer. More than a bounded number of different questions, or of callers that wait, is refused with
    /// LimitsExceeded.
    void ask(const std::string& key, const Build& build, uid_t user, Call call);

  private:
    class State;
    /// Shared with answers that are still under way, which may come after the end of this.
    std::shared_ptr<State> state_;
};

} // namespace affinityd::control
