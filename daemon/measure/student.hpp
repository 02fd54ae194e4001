// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace affinityd::measure {

/// The value that a Student's t variable with `degrees` of freedom exceeds with probability `tail`
/// (0 < tail < 0.5).
[[nodiscard]] double student_quantile(double tail, unsigned degrees);

} // namespace affinityd::measure
