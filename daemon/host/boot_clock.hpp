// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace affinityd::host {
/// A text that the kernel makes anew with each boot: boot_id of random(4). "" if it cannot be read.
[[nodiscard]] const std::string& boot_id();

} // namespace affinityd::host
