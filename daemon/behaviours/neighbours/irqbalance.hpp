// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"

#include <future>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::behaviours {

// The language of irqbalance's socket. Source: irqbalance(1), "API".

/// The request that replaces the list of banned interrupts. No value: the list is longer than irqbalance
/// reads (255 bytes).
[[nodiscard]] std::optional<std::string> ban_request(const std::vector<unsigned>& irqs);

/// The interrupts of "SLEEP 10 IRQ 30 LOAD 0 DIFF 0 CLASS 5 ... BANNED 0", which answers "setup", in
/// ascending order. Accepts any bytes.
[[nodiscard]] std::vector<unsigned> parse_irqbalance_setup(std::string_view text);

/// True if the text begins as an answer to "setup" does.
[[nodiscard]] bool is_setup_answer(std::string_view text);

/// True for "irqbalance812.sock".
[[nodiscard]] bool is_irqbalance_socket(std::string_view name);

/// irqbalance's own lists of banned interrupts, by the name of its socket, each ascending.
using BannedLists = std::map<std::string, std::vector<unsigned>>;

/// A line for each socket: its name and its interrupts, divided by spaces.
[[nodiscard]] std::string print_record(const BannedLists& lists);
/// The reverse; what cannot be read is left out.
[[nodiscard]] BannedLists parse_record(std::string_view text);

/// Keeps irqbalance off the interrupts that are under policy: through the socket by which root may ask for
/// its settings and replace its list of banned interrupts while it runs. Writes irqbalance's own list down
/// first, so that this or the next daemon can give it back; leaves irqbalance's files alone.
///
/// A thread talks, so that no caller waits; at its end it waits for the conversation under way, half a second
/// for each irqbalance that does not answer.
class Irqbalance {
  public:
    /// `folder`: where its sockets are; `record`: the file for its own lists.
    Irqbalance(std::string folder, std::string record);

    /// Asks every running irqbalance to leave these interrupts alone (ascending, each once), in place of
    /// those asked for before.
    void keep_off(std::vector<unsigned> irqs);
    /// Asks each to use its own list again.
    void give_back();

    /// Readable when a conversation is over: then handle(). -1 if there is no descriptor to be had.
    [[nodiscard]] int fd() const { return over_.get(); }
    void handle();
    /// A conversation is under way.
    [[nodiscard]] bool is_talking() const { return talking_.valid(); }

    /// A line for a person: what was asked, what is being asked, or why it cannot be asked.
    [[nodiscard]] std::string note() const;
    /// Each that runs has taken the list.
    [[nodiscard]] bool keeps_off() const;
    /// The faults of give_back(), one line each, since the last call.
    [[nodiscard]] std::vector<Error> take_faults();

    struct Instance {
        std::vector<unsigned> original; ///< what it left alone before
        std::vector<unsigned> asked;    ///< what it was asked to leave alone
        bool is_known = false;          ///< both are
        std::string fault;              ///< why it could not be told
    };
    using Instances = std::map<std::string, Instance>; ///< by socket
    struct Wish {
        std::vector<unsigned> irqs;
        bool is_return = false;
    };

  private:
    struct Outcome {
        Instances instances;
        std::vector<Error> faults;
    };
    void talk(Wish wish);

    std::string folder_;
    std::string record_;
    Wish wish_;             ///< the latest
    bool is_new_ = false;   ///< the conversation under way is about another one
    Instances instances_;   ///< as of the last conversation
    std::string no_thread_; ///< why there was none
    std::vector<Error> faults_;
    host::Fd over_;
    std::future<Outcome> talking_; ///< last: its end waits for the thread
};

} // namespace affinityd::behaviours
