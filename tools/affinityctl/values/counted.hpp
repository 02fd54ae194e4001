// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.hpp"

namespace affinityctl {

using affinityd::counted;
using affinityd::grouped;

} // namespace affinityctl
