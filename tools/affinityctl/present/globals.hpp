// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace affinityctl {

/// The options that every verb has; they may come before or after it.
struct Globals {
    bool json = false;                          ///< --json: one JSON document on standard output
    bool color = false;                         ///< standard output is a terminal and NO_COLOR is not set
    std::string root = "/";                     ///< --root DIR: a recorded machine; "/": this one
    std::string runtime_dir = "/run/affinityd"; ///< --runtime-dir DIR: where the daemon's socket is
    std::vector<std::string> hosts;             ///< -H HOST: machines whose daemons are asked, by ssh(1)
    std::string host;                           ///< the one of them that is asked now; "": this machine

    /// The one that the system starts, whose state folder is the standard one.
    [[nodiscard]] bool is_standard_daemon() const { return host.empty() && runtime_dir == "/run/affinityd"; }
    [[nodiscard]] bool is_recorded() const { return root != "/"; }
};

/// Exit codes, documented in affinityctl(1).
enum Exit : int {
    exit_ok = 0,
    exit_failure = 1,   ///< the verb failed; the reason is on standard error
    exit_usage = 2,     ///< the command line is wrong
    exit_findings = 3,  ///< `check` found errors, `plan` problems, `doctor` warnings, `intruders` a long one
    exit_no_daemon = 4, ///< no daemon answers at the runtime directory
};

/// The reason of a failure, and the exit code.
struct CallError {
    Exit code = exit_failure;
    std::string message;
};

/// To be called first: where the program was started without standard input, output or error, no file that it
/// opens takes their place, or what it prints would be written into that file.
void hold_standard_streams();

/// Writes what is left to be printed. The exit code: `status`, or, after a complaint, that of a failure if
/// something printed was not taken, as by a full disk; `refused`: the errno of that, if it was seen. Readers
/// that have gone have seen enough: no complaint.
[[nodiscard]] int end_output(int status, int refused = 0);

} // namespace affinityctl
