// SPDX-License-Identifier: Apache-2.0
#include "host/container.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <string_view>

namespace affinityd::host {

bool is_container(const Root& root) {
    const auto environment = root.proc().text("1/environ").value_or("");
    const auto is_mark = [](std::string_view variable) { return variable.starts_with("container="); };
    return std::ranges::any_of(split(environment, '\0'), is_mark) ||
           root.proc().text("1/mountinfo").value_or("").find("/docker/containers/") != std::string::npos;
}

} // namespace affinityd::host
