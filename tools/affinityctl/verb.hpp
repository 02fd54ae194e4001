// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace affinityctl {

/// What every verb is told: the options that stand before or after the verb.
struct Globals {
    bool json = false;                          ///< --json: one JSON document on standard output
    bool color = false;                         ///< standard output is a terminal and NO_COLOR is not set
    std::string root = "/";                     ///< --root DIR: a recorded machine
    std::string runtime_dir = "/run/affinityd"; ///< --runtime-dir DIR: where the daemon's socket is
};

/// Exit codes, documented in affinityctl(1).
enum Exit : int {
    exit_ok = 0,
    exit_failure = 1,   ///< the verb could not do its work; the reason is on standard error
    exit_usage = 2,     ///< the command line is wrong
    exit_findings = 3,  ///< `check` found errors, `plan` found problems
    exit_no_daemon = 4, ///< no daemon answers at the runtime directory
};

/// Each verb adds its CLI11 subcommand; its callback sets `status` to an Exit. One verb, one source file.
void add_topology(CLI::App& app, Globals& globals, int& status);
void add_cpus(CLI::App& app, Globals& globals, int& status);
void add_irqs(CLI::App& app, Globals& globals, int& status);
void add_nics(CLI::App& app, Globals& globals, int& status);
void add_check(CLI::App& app, Globals& globals, int& status);
void add_plan(CLI::App& app, Globals& globals, int& status);
void add_status(CLI::App& app, Globals& globals, int& status);
void add_watch(CLI::App& app, Globals& globals, int& status);
void add_explain(CLI::App& app, Globals& globals, int& status);
void add_reload(CLI::App& app, Globals& globals, int& status);
void add_apply(CLI::App& app, Globals& globals, int& status);
void add_release(CLI::App& app, Globals& globals, int& status);
void add_policies(CLI::App& app, Globals& globals, int& status);
void add_measure(CLI::App& app, Globals& globals, int& status);
void add_history(CLI::App& app, Globals& globals, int& status);

} // namespace affinityctl
