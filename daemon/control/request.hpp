// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/call.hpp"

#include <cstdint>
#include <string>

namespace affinityd::control {

/// Methods of org.affinityd.Manager1.
enum class Method : std::uint8_t {
    get_status,
    get_plan,
    get_history,
    explain,
    reload,
    release,
    apply,
    measure
};

/// True for methods that change nothing.
[[nodiscard]] constexpr bool only_reads(Method method) { return method <= Method::explain; }

/// One call of one of the methods.
struct Request {
    Method method;
    std::string argument; ///< "" for methods without one
    Call call;
};

} // namespace affinityd::control
