// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/daemon/call.hpp"
#include "affinityctl/values/globals.hpp"

#include <expected>
#include <string>

namespace affinityctl {

/// What is wrong with the file of a picture ("": none is wanted; "-": standard output): it is where the JSON
/// goes, or cannot be written, which whoever measures first would be told for nothing.
[[nodiscard]] std::expected<void, CallError> check_picture(const Globals& globals, const std::string& path);

/// Writes an SVG document into a file, which may be a device, a FIFO or a link; "-" is standard output. The
/// exit code; what went wrong is on standard error.
[[nodiscard]] int write_picture(const std::string& path, const std::string& document);

} // namespace affinityctl
