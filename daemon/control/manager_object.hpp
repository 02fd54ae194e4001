// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "control/server.hpp"

struct sd_bus;

namespace affinityd::control {

inline constexpr const char* bus_name = "org.affinityd";
inline constexpr const char* object_path = "/org/affinityd";
inline constexpr const char* interface_name = "org.affinityd.Manager1";
inline constexpr const char* manage_action = "org.affinityd.manage";

/// What the object's methods are answered with.
struct ManagerObject {
    app::Commands& commands;
    Server::Hooks hooks;
};

/// Adds the object to a connection; 0 or a negative errno. `object` must outlive the connection.
int add_manager_object(sd_bus* bus, ManagerObject& object);

} // namespace affinityd::control
