// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/notice.hpp"
#include "app/log.hpp"
#include "coexist/notice.hpp"

namespace affinityd::app {

void tell(Log& log, const accounting::Notice& notice);
void tell(Log& log, const coexist::Notice& notice);

} // namespace affinityd::app
