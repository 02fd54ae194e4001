// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/daemon.hpp"

#include <functional>

typedef struct sd_bus sd_bus;

namespace affinityd::behaviours {

using namespace core;

/// The connection over which systemd is asked; null while there is none.
using Bus = std::function<sd_bus*()>;

/// Adds all that were built, in the order of meson.build.
void add_all(Daemon& daemon, const Bus& bus);

} // namespace affinityd::behaviours
