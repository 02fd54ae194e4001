// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace affinityctl {

/// To be called first: where the program was started without standard input, output or error, no file that it
/// opens takes their place, or what it prints would be written into that file.
void hold_standard_streams();

/// Writes what is left to be printed. The exit code: `status`, or, after a complaint, that of a failure if
/// something printed was not taken, as by a full disk; `refused`: the errno of that, if it was seen. Readers
/// that have gone have seen enough: no complaint.
[[nodiscard]] int end_output(int status, int refused = 0);

} // namespace affinityctl
