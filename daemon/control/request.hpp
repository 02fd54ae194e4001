// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "control/call.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

/// The method of this name, if it is one that changes something.
[[nodiscard]] constexpr std::optional<Method> changing_method(std::string_view name) {
    if (name == "Reload") return Method::reload;
    if (name == "Release") return Method::release;
    if (name == "Apply") return Method::apply;
    if (name == "Measure") return Method::measure;
    return std::nullopt;
}

/// One call of one of the methods.
struct Request {
    Method method;
    std::string argument; ///< "" for methods without one
    Call call;
    app::Until until = app::Until::done; ///< for methods that change something
};

} // namespace affinityd::control
