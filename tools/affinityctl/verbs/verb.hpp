// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/globals.hpp"

namespace CLI {
class App;
}

namespace affinityctl {

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
void add_locality(CLI::App& app, Globals& globals, int& status);
void add_sharers(CLI::App& app, Globals& globals, int& status);

/// Subcommands of `measure`: experiments.
void add_measure_models(CLI::App& measure, Globals& globals, int& status);
void add_measure_latency(CLI::App& measure, Globals& globals, int& status);
void add_measure_sharing(CLI::App& measure, Globals& globals, int& status);
void add_measure_smt(CLI::App& measure, Globals& globals, int& status);
void add_measure_cache(CLI::App& measure, Globals& globals, int& status);

} // namespace affinityctl
