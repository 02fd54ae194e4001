// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/output.hpp"

#include <functional>

namespace CLI {
class App;
}

namespace affinityctl {

/// A verb as --help and --json-schema show it.
struct Verb {
    const char* name;
    const char* summary;
    const char* example; ///< a command line
    Fields answer{};     ///< of its JSON
    bool is_list = false;
    const char* manual = "affinityctl(1)";
};

/// Adds a verb whose answer `run` makes. The exit code goes to `status`.
CLI::App* add_verb(CLI::App& app, const Verb& verb, Globals& globals, int& status,
                   std::function<Outcome()> run);

/// Each adds a verb, or several that belong together.
void add_topology(CLI::App& app, Globals& globals, int& status);
void add_cpus(CLI::App& app, Globals& globals, int& status);
void add_irqs(CLI::App& app, Globals& globals, int& status);
void add_nics(CLI::App& app, Globals& globals, int& status);
void add_check(CLI::App& app, Globals& globals, int& status);
void add_plan(CLI::App& app, Globals& globals, int& status);
void add_status(CLI::App& app, Globals& globals, int& status);
void add_watch(CLI::App& app, Globals& globals, int& status);
void add_explain(CLI::App& app, Globals& globals, int& status);
void add_orders(CLI::App& app, Globals& globals, int& status); ///< reload, apply, release
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
