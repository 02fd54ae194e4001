// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace affinityctl {

/// Prints a text, through a pager if standard output is a terminal and `may_page`. $AFFINITYCTL_PAGER, else
/// $PAGER, names the pager, "" or "cat" none; without them it is less(1), which ends at once if all fits on
/// one screen. A pager that cannot be started is none. Under sudo(8), where the environment may be
/// another user's, it is less and runs nothing for its user (LESSSECURE).
void show(const std::string& text, bool may_page);

} // namespace affinityctl
