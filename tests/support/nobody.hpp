// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace affinityd::test {

/// A user and a group without rights.
constexpr unsigned nobody = 65534;

} // namespace affinityd::test
