// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/command_runner.hpp"
#include "control/manager_object.hpp"
#include "control/polkit.hpp"
#include "control/rate_limit.hpp"
#include "control/sender_users.hpp"
#include "control/shared_answers.hpp"

#include <functional>
#include <memory>

namespace affinityd::control {

/// True for users who may do everything: root, and whoever the daemon runs as.
[[nodiscard]] bool is_privileged_user(uid_t user);

/// Takes calls from the system bus. Root and the daemon's own user may do everything. Everybody else reads
/// shared answers without the details of other users' processes, so often as the rate limit lets them, and
/// changes something if polkit agrees.
///
/// A message bus counts what a caller does not read as its sender's, and takes nothing more from a sender
/// with too much of it. So what the daemon itself asks of the bus goes over another connection than the
/// answers.
class BusFront final : public Front {
  public:
    struct Limits {
        double calls_per_second = 5; ///< of one user, in the mean
        double calls_at_once = 20;   ///< of one user
        Polkit::Limits polkit{};
        std::function<bool(uid_t)> is_privileged = is_privileged_user;
    };
    /// Over `connection` the bus and polkit are asked; it gives nullptr while there is none. `event` and
    /// `runner` must outlive this.
    BusFront(sd_event* event, CommandRunner& runner, Polkit::Connection connection, const Limits& limits);

    /// Serves a new connection: it gets the object. 0 or a negative errno value.
    [[nodiscard]] int serve(sd_bus* bus, std::shared_ptr<Outbox> outbox);
    void take(Request request) override;
    /// A connection has ended.
    void forget();

  private:
    void take_from(uid_t user, Request request);
    void read(uid_t user, Request request);

    CommandRunner& runner_;
    Polkit::Connection connection_;
    std::function<bool(uid_t)> is_privileged_;
    SenderUsers users_;
    RateLimit rate_;
    std::shared_ptr<Outbox> outbox_;
    Polkit polkit_;
    SharedAnswers answers_;
};

} // namespace affinityd::control
