// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "control/join_wire.h"

#include <cstddef>
#include <expected>
#include <span>

namespace affinityd::control {

/// What a packet asks for, any bytes; the sender is not filled in. Unexpected: the status with which it is
/// refused, a negative errno value: EBADMSG (no request), EPROTONOSUPPORT (of another version), ENOSYS (no
/// wish that is known), EINVAL (a wish that makes no sense).
[[nodiscard]] std::expected<app::JoinRequest, int> parse_join(std::span<const std::byte> packet);

/// The answer as it is sent.
[[nodiscard]] affinityd_join_reply reply_to(const app::JoinAnswer& answer);
/// A refusal before anybody was asked; `status`: a negative errno value.
[[nodiscard]] affinityd_join_reply refusal(int status);

} // namespace affinityd::control
