// SPDX-License-Identifier: Apache-2.0
// The verbs that make the daemon do something and need no table: reload, apply, release, measure.
#include "say.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace affinityctl {

namespace {

int tell(const Globals& globals, const char* method, const std::vector<std::string>& arguments) {
    const auto answer = call_daemon(globals, method, arguments);
    if (!answer) {
        if (globals.json) fmt::print("{}\n", nlohmann::json{{"ok", false}, {"message", answer.error().message}}.dump());
        return complain(answer.error());
    }
    if (globals.json) fmt::print("{}\n", nlohmann::json{{"ok", true}, {"message", *answer}}.dump());
    else if (!answer->empty()) fmt::print("{}\n", *answer);
    return exit_ok;
}

} // namespace

void add_reload(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand("reload", "read the policies again; with a fault in them the running ones stay");
    verb->callback([&] { status = tell(globals, "Reload", {}); });
}

void add_apply(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand("apply", "look at everything again now, also at what was released");
    verb->callback([&] { status = tell(globals, "Apply", {}); });
}

void add_measure(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand("measure", "let the daemon measure throughput now; status shows what came of it");
    verb->callback([&] { status = tell(globals, "Measure", {}); });
}

void add_release(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand("release", "put back what a policy or a process was given, until the next apply or reload");
    auto what = std::make_shared<std::string>();
    verb->add_option("what", *what, "a policy's name or a PID; without: everything");
    verb->callback([&globals, &status, what] { status = tell(globals, "Release", {*what}); });
}

} // namespace affinityctl
