// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace affinityd::host {

/// Raises the soft limit of open files to the hard one, `most` at most (what the unit sets; systemd lets most
/// services begin with 1,024, for the sake of select(2), which we do not use). It never lowers it. Inherited
/// by children. 0 or errno: a wish, not a need. setrlimit(2).
int allow_many_open_files(std::uint64_t most = 65'536);

} // namespace affinityd::host
