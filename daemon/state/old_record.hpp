// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::state {

/// Version 0.1 wrote flow tables as steering maps with queues named "rx-0-flows" and "flow-entries", and
/// their counts as the list of the bits that are set: "15" is 32768. Makes the fields of such a line those of
/// a "flows" line; other fields stay as they are. The new fields point into `counts`.
void renew_flow_fields(std::vector<std::string_view>& fields, std::array<std::string, 3>& counts);

} // namespace affinityd::state
