// SPDX-License-Identifier: Apache-2.0
// The verbs that make the daemon do something and need no table: reload, apply, release.
#include "say.hpp"

#include <CLI/CLI.hpp>

namespace affinityctl {

void add_reload(CLI::App& app, Globals& globals, int& status) {
    auto* verb =
        app.add_subcommand("reload", "read the policies again; with a fault in them the running ones stay");
    verb->callback([&] { status = tell(globals, "Reload", {}); });
}

void add_apply(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand("apply", "look at everything again now, also at what was released");
    verb->callback([&] { status = tell(globals, "Apply", {}); });
}

void add_release(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand(
        "release", "put back what a policy or a process was given, until the next apply or reload");
    auto what = std::make_shared<std::string>();
    verb->add_option("what", *what, "a policy's name or a PID; without: everything");
    verb->callback([&globals, &status, what] { status = tell(globals, "Release", {*what}); });
}

} // namespace affinityctl
