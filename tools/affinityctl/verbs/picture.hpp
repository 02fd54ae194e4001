// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace affinityctl {

/// Writes an SVG document to a file; "-" is standard output. The exit code; what went wrong is on standard
/// error.
[[nodiscard]] int write_picture(const std::string& path, const std::string& document);

} // namespace affinityctl
