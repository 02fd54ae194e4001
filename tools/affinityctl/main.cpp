// SPDX-License-Identifier: Apache-2.0
// affinityctl: a table of verbs.
#include "affinityctl/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include <unistd.h>

using namespace affinityctl;

namespace {

using Add = void (*)(CLI::App&, Globals&, int&);

/// In the order of --help: the present state, plans, the machine, changes, measurements.
constexpr Add verbs[] = {add_status,   add_watch,    add_plan,    add_explain, add_check,
                         add_policies, add_topology, add_cpus,    add_nics,    add_irqs,
                         add_reload,   add_apply,    add_release, add_measure, add_history};

} // namespace

int main(int argc, char** argv) {
    Globals globals;
    globals.color = ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
    int status = exit_ok;
    CLI::App cli("Shows and steers what affinityd does.", "affinityctl");
    cli.set_version_flag("--version", "affinityctl " AFFINITYD_VERSION);
    cli.add_flag("--json", globals.json, "one JSON document on standard output");
    cli.add_option("--root", globals.root, "a recorded machine instead of this one");
    cli.add_option("--runtime-dir", globals.runtime_dir, "where the daemon's socket is")
        ->capture_default_str();
    cli.fallthrough(); // the options above may also follow the verb
    cli.require_subcommand(1);
    for (const Add add : verbs)
        add(cli, globals, status);
    try {
        cli.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return cli.exit(error) == 0 ? exit_ok : exit_usage;
    }
    return status;
}
