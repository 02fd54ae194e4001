// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace affinityd::test {

/// An interrupt's device in the tests' journals.
inline constexpr const char* device = "devices/pci0000:00/0000:00:03.0";

} // namespace affinityd::test
