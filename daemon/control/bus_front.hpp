// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/command_runner.hpp"
#include "control/manager_object.hpp"
#include "control/polkit.hpp"
#include "control/rate_limit.hpp"
#include "control/sender_users.hpp"
#include "control/shared_answers.hpp"

#include <functional>

namespace affinityd::control {

/// True for users who may do everything: root, and whoever the daemon runs as.
[[nodiscard]] bool is_privileged_user(uid_t user);

/// Takes calls from the system bus. Root and the daemon's own user may do everything. Everybody else reads
/// shared answers without the details of other users' processes, so often as the rate limit lets them, and
/// changes something if polkit agrees.
class BusFront final : public Front {
  public:
    struct Limits {
        double calls_per_second = 5; ///< of one user, in the mean
        double calls_at_once = 20;   ///< of one user
        Polkit::Limits polkit{};
        std::function<bool(uid_t)> is_privileged = is_privileged_user;
    };
    /// `event` and `runner` must outlive this.
    BusFront(sd_event* event, CommandRunner& runner, Limits limits);

    void take(Request request) override;
    /// The connection has ended.
    void forget();

  private:
    void take_from(uid_t user, Request request);
    void read(uid_t user, Request request);

    CommandRunner& runner_;
    std::function<bool(uid_t)> is_privileged_;
    SenderUsers users_;
    RateLimit rate_;
    Polkit polkit_;
    SharedAnswers answers_;
};

} // namespace affinityd::control
