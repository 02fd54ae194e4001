// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/request.hpp"

struct sd_bus;

namespace affinityd::control {

inline constexpr const char* bus_name = "org.affinityd";
inline constexpr const char* object_path = "/org/affinityd";
inline constexpr const char* interface_name = "org.affinityd.Manager1";

/// Takes the calls that come in over one kind of connection and decides whether they are carried out.
class Front {
  public:
    virtual ~Front() = default;
    virtual void take(Request request) = 0;
};

/// Adds the object /org/affinityd to a connection; 0 or a negative errno value. `front` must outlive the
/// connection.
int add_manager_object(sd_bus* bus, Front& front);

} // namespace affinityd::control
