// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/polkit.hpp"
#include "control/requests.hpp"

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace affinityd::control {

/// True for users who may do everything: root, and the daemon's own.
[[nodiscard]] bool is_privileged_user(uid_t user);

/// Takes calls from the system bus. Root and the daemon's own user may do everything. All others read answers
/// without the details of other users' processes, as far as their budget goes, and change something if polkit
/// agrees. Answers for them are kept for a second, and those who ask meanwhile share them.
///
/// A message bus counts an answer that its receiver does not read as its sender's, and takes nothing more
/// from a sender with too much of it. So the daemon's own questions go over another connection than the
/// answers.
class BusFront final : public Front {
  public:
    struct Limits {
        Polkit::Limits polkit{};
        std::function<bool(uid_t)> is_privileged = is_privileged_user;
        /// Takes a question from the budget of its user; false: it is spent.
        std::function<bool(uid_t)> may_ask = [](uid_t) { return true; };
    };
    /// Over `connection` the bus and polkit are asked; it gives nullptr while there is none. `runner` must
    /// outlive this.
    BusFront(CommandRunner& runner, Polkit::Connection connection, const Limits& limits);

    /// Serves a new connection: it gets the object. 0 or a negative errno value.
    [[nodiscard]] int serve(sd_bus* bus, std::shared_ptr<Outbox> outbox);
    void take(Request request) override;
    /// A connection has ended: drops what was asked over it.
    void forget();

  private:
    using Clock = std::chrono::steady_clock;
    /// Asks the bus for the user of a sender. A message's own word on that is not trusted.
    struct Sender {
        BusFront* front = nullptr;
        Request request;
        Slot slot{};
        std::list<Sender>::iterator self{};
    };
    struct Shared {
        std::optional<Result<OwnedText>> answer{}; ///< none: it is being worked out
        Clock::time_point expires{};
        std::vector<std::pair<uid_t, Call>> waiting{};
    };
    using Answers = std::unordered_map<std::string, Shared>;
    void take_from(uid_t user, Request request);
    void read(uid_t user, Request request);
    static int on_sender(sd_bus_message* reply, void* userdata, sd_bus_error*);

    CommandRunner& runner_;
    Polkit::Connection connection_;
    Limits limits_;
    std::list<Sender> senders_;
    std::shared_ptr<Outbox> outbox_;
    Polkit polkit_;
    /// By question. Shared with answers under way, which may come after the end of this.
    std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();
};

} // namespace affinityd::control
