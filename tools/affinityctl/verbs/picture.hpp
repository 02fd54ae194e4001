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

/// Writes an SVG document: a new file beside `path`, which then takes its name; "-" is standard output. A
/// path of something that is no regular file is refused. The exit code; the reason is on standard error.
[[nodiscard]] int write_picture(const std::string& path, const std::string& document);

} // namespace affinityctl
