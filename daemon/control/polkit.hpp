// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/bus.hpp"
#include "control/calls.hpp"

#include <chrono>
#include <functional>
#include <list>

#include <sys/types.h>

namespace affinityd::control {

inline constexpr const char* manage_action = "org.affinityd.manage";

/// Asks polkit whether callers on the system bus may change things, without waiting. Source:
/// org.freedesktop.PolicyKit1.Authority(8), CheckAuthorization.
class Polkit {
  public:
    struct Limits {
        std::chrono::milliseconds patience{25'000}; ///< for an answer that needs no person
        std::chrono::milliseconds person{120'000};  ///< where polkit may ask a person for a password
        std::size_t per_user = 4;                   ///< open questions
        std::size_t in_all = 32;
    };
    /// `bus`: the connection over which polkit is asked, which must outlive this.
    Polkit(const SystemBus& bus, Limits limits) : bus_(bus), limits_(limits) {}
    Polkit(const Polkit&) = delete;
    Polkit& operator=(const Polkit&) = delete;
    ~Polkit() = default;

    using Allowed = std::move_only_function<void(Call call)>;
    /// Hands the call to `allowed` if polkit says yes; else replies to it: AccessDenied,
    /// InteractiveAuthorizationRequired, TimedOut, or LimitsExceeded. `user` is whose call it is.
    void ask(Call call, uid_t user, Allowed allowed);
    /// The connection has ended: drops all questions.
    void forget() { open_.clear(); }

  private:
    struct Question {
        Polkit* asker;
        Call call;
        uid_t user;
        Allowed allowed;
        Slot slot{};
        std::list<Question>::iterator self{};
    };
    [[nodiscard]] bool has_room(uid_t user) const;
    [[nodiscard]] int send(sd_bus* bus, Question& question) const;
    static int on_answer(sd_bus_message* reply, void* userdata, sd_bus_error*);

    const SystemBus& bus_;
    Limits limits_;
    std::list<Question> open_;
};

} // namespace affinityd::control
