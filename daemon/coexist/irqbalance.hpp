// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "coexist/irqbalance_call.hpp"
#include "coexist/irqbalance_protocol.hpp"

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::coexist {

/// Keeps irqbalance off the interrupts that are under policy: through the socket by which root may ask for
/// its settings and replace its list of banned interrupts while it runs. Its files are never touched. Its own
/// list is written down first, so that it can be given back, also by the next daemon.
///
/// Nothing here waits: a change starts a conversation, which handle() carries on whenever fd() is readable.
class Irqbalance {
  public:
    using Clock = std::chrono::steady_clock;
    /// `folder`: where its sockets are; `record`: the file for its own lists.
    Irqbalance(std::string folder, std::string record)
        : folder_(std::move(folder)), record_(std::move(record)) {}

    /// Asks every running irqbalance to leave these interrupts alone (ascending, each once), in place of
    /// those asked for before.
    void keep_off(std::vector<unsigned> irqs, Clock::time_point now = Clock::now());
    /// Asks each to use its own list again.
    void give_back(Clock::time_point now = Clock::now());

    /// For an event loop: readable when handle() has work; always the same, -1 if there is none to be had.
    [[nodiscard]] int fd() const { return wake_up_.fd(); }
    void handle(Clock::time_point now = Clock::now());
    /// A conversation is under way.
    [[nodiscard]] bool is_talking() const { return call_.has_value(); }

    /// How it stands, for a person: what was asked, what is being asked, or why it cannot be asked.
    [[nodiscard]] std::string note() const;
    /// Each that runs has taken the list.
    [[nodiscard]] bool keeps_off() const;
    /// The faults of give_back(), one line each, since the last call.
    [[nodiscard]] std::vector<Error> take_faults();

  private:
    struct Instance {
        std::vector<unsigned> original; ///< what it left alone before
        std::vector<unsigned> asked;    ///< what it was asked to leave alone
        bool is_known = false;          ///< both are
        std::string fault;              ///< why it could not be told
    };
    struct Call {
        std::string socket;
        bool is_question = false; ///< for its list; else the list is given
        std::vector<unsigned> list;
        IrqbalanceCall call;
    };
    void look_for_sockets();
    void talk(Clock::time_point now);
    [[nodiscard]] bool start_next(Clock::time_point now);
    [[nodiscard]] std::optional<Call> next_call(const std::string& socket, Instance& instance,
                                                Clock::time_point now);
    void finish(Call& call, const Result<std::string>& result);
    void learn(const std::string& socket, Instance& instance, const std::string& answer);
    [[nodiscard]] Result<void> write_record() const;
    [[nodiscard]] BannedLists read_record() const;

    std::string folder_;
    std::string record_;
    std::vector<unsigned> wanted_;
    bool is_returning_ = false;
    std::map<std::string, Instance> instances_; ///< by socket
    std::deque<std::string> queue_;             ///< sockets still to be talked to
    std::optional<Call> call_;
    WakeUp wake_up_;
    std::vector<Error> faults_;
};

} // namespace affinityd::coexist
