// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/balance.hpp"
#include "app/bookkeeping.hpp"
#include "app/commands.hpp"
#include "app/load.hpp"
#include "app/log.hpp"
#include "app/place_thread.hpp"
#include "app/steering.hpp"
#include "app/work.hpp"
#include "inventory/facts.hpp"
#include "policy/policy.hpp"
#include "state/journal.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace affinityd::app {

// Stages of a pass that belong to none of its ways. References must outlive the stages.

/// Reads the hardware again, in steps, if `wanted` says so when the stage begins; `wanted` is cleared,
/// unless that fails. What events bring in meanwhile is younger, and stays.
[[nodiscard]] Sequence::Stage reread_machine(const host::Root& root, Current& current, bool& wanted,
                                             Log& log);

/// Reads one interface again, in steps.
[[nodiscard]] Sequence::Stage reread_nic(const host::Root& root, Current& current, const std::string& nic,
                                         Log& log);

/// Asks interfaces again that could not say how many queues they have.
void reread_channels(const host::Root& root, Current& current);

/// Waits for the first list of listeners on the ports that policies ask for, for a bounded time: who is
/// matched before that is looked at again.
[[nodiscard]] Sequence::Stage await_listeners(inventory::FactSources& sources);

/// Gets latencies that were measured since, for policies that ask for them.
[[nodiscard]] Sequence::Stage learn_latencies(LatencySource& source, const Current& current,
                                              const std::string& state_dir);

/// Writes the undo journal anew if it was removed or cut, and logs what is newly wrong with it.
[[nodiscard]] Sequence::Stage look_after_journal(state::Journal& journal, Log& log);

/// Learns which interface serves which process; `changed` is called if the placements are others for it.
[[nodiscard]] Sequence::Stage learn_nic_usage(Bookkeeping& bookkeeping, const Steering& steering,
                                              std::function<void()> changed);

/// Answers those who wait for a pass with what it did, and tells the log what was placed for the first time.
class PassAnswers {
  public:
    struct Parts {
        Log& log;
        /// True while systemd still owes answers about units, which takes a bounded time.
        std::function<bool()> is_busy;
        bool acts = true; ///< false: a dry run, which says so
    };
    explicit PassAnswers(Parts parts) : parts_(std::move(parts)) {}
    PassAnswers(const PassAnswers&) = delete;
    PassAnswers& operator=(const PassAnswers&) = delete;
    ~PassAnswers() = default;

    /// Who waits for a pass.
    struct Waiting {
        Answer answer;
        std::string headline{}; ///< the answer begins with it
        std::string fault{};    ///< the answer is an Error that begins with it; "": it is none
        std::string note{};
        bool is_overtaken = false; ///< by a reload, after which the pass under way no longer looks at all
    };
    /// To be answered at the end of the next pass that begins.
    void add(Waiting waiting) { waiting_.push_back(std::move(waiting)); }
    /// The same pass, whose end answers those who wait now. One is under way at a time.
    [[nodiscard]] std::unique_ptr<Job> watch(std::unique_ptr<Job> pass);
    /// Other policies are in force: whoever waits is told, and waits for the pass that follows.
    void policies_changed(const policy::PolicySet& policies);
    /// An answer of systemd has come, about a unit of this policy.
    void unit_answered(const std::string& unit, const std::string& policy, const FenceResult& result);
    /// The daemon ends: everybody is told, and no pass is counted any more.
    void give_up(const std::string& why);

    [[nodiscard]] Placed& placed() { return placed_; }

  private:
    class Watched;
    void finish();
    void answer(std::vector<Waiting> to, const std::string& note);
    void tell_news();

    Parts parts_;
    Placed placed_;
    std::vector<Waiting> waiting_; ///< for the next pass
    std::vector<Waiting> joined_;  ///< for the one under way
    std::vector<Waiting> late_;    ///< whose pass is over but for systemd
};

} // namespace affinityd::app
