// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/counted.hpp"

namespace affinityctl {

using affinityd::counted;
using affinityd::grouped;

} // namespace affinityctl
