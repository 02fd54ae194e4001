// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <string>
#include <vector>

namespace affinityd::ttcp {

/// The options that somebody asks for over a connection: the line of measure/request.hpp, of at most 8 KiB,
/// within 10 s.
[[nodiscard]] Result<std::vector<std::string>> read_request(int connection);

/// From now on this process is ended by SIGIO when the other end of the connection goes away (O_ASYNC,
/// fcntl(2)): nobody waits for the report then.
[[nodiscard]] Result<void> end_with(int connection);

} // namespace affinityd::ttcp
