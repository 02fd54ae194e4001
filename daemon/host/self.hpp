// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace affinityd::host {

/// Folder of the running program, with a '/' at its end; "" if the kernel does not tell.
[[nodiscard]] std::string program_folder();

} // namespace affinityd::host
