// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

namespace libaffinity {

/// The CPUs that the calling thread may run on, like "0-3,8", with a NUL byte; what does not fit is replaced
/// by "...". `size`: at least 16. "": the kernel does not say.
void list_own_cpus(char* into, size_t size);

} // namespace libaffinity
