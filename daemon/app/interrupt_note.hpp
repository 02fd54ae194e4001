// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/world.hpp"
#include "base/error.hpp"
#include "host/root.hpp"

#include <optional>
#include <string>

namespace affinityd::app {

/// Why no policy places an interrupt, named as irq:NUMBER or by its label. An Error: it does not exist. No
/// value: that is no name of an interrupt.
[[nodiscard]] std::optional<Result<std::string>> interrupt_note(const host::Root& root, const World& world,
                                                                const std::string& subject);

} // namespace affinityd::app
