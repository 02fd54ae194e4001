// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "app/load.hpp"
#include "app/place_thread.hpp"
#include "policy/policy.hpp"

#include <string>
#include <vector>

namespace affinityd::app {

/// Answers those who wait for a pass with what it did, and tells the log what was placed for the first time.
class PassAnswers {
  public:
    explicit PassAnswers(Shared& shared) : shared_(shared) {}

    /// An answer that waits for a pass.
    struct Waiting {
        Answer answer;
        std::string headline{};     ///< the answer begins with it
        std::string fault{};        ///< the answer is an Error that begins with it; "": it is none
        bool is_of_release = false; ///< only what was put back matters
    };
    /// To be answered at the end of the next pass that begins.
    void add(Waiting waiting) { waiting_.push_back(std::move(waiting)); }
    /// A pass begins; one is under way at a time.
    void begin();
    /// It is over: answers those who waited when it began.
    void finish();
    /// Other policies are in force: an answer that waits waits for the pass that follows.
    void policies_changed(const policy::PolicySet& policies);
    /// The daemon ends: all are told, and no pass is counted any more.
    void give_up(const std::string& why);

    [[nodiscard]] Placed& placed() { return placed_; }

  private:
    void tell_news();

    Shared& shared_;
    Placed placed_;
    std::vector<Waiting> waiting_; ///< for the next pass
    std::vector<Waiting> joined_;  ///< for the one under way
};

} // namespace affinityd::app
