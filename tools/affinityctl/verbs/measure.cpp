// SPDX-License-Identifier: Apache-2.0
// affinityctl measure: a run by the daemon now, or an experiment by this program.
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "measure/program.hpp"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityctl {

namespace {

/// Becomes affinity-ttcp; returns only if that fails.
int run_ttcp(const Globals& globals, const std::vector<std::string>& arguments) {
    if (const auto live = check_is_live(globals); !live) return complain(globals, live.error());
    const auto program = affinityd::measure::find_ttcp();
    if (!program)
        return complain(globals, {exit_failure, "affinity-ttcp is not installed beside this program"});
    std::vector<std::string> all{*program};
    if (arguments.empty()) all.insert(all.end(), {"--loopback", "--seconds", "2"});
    all.insert(all.end(), arguments.begin(), arguments.end());
    if (globals.json) all.emplace_back("--json");
    std::vector<char*> argv;
    for (auto& argument : all)
        argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    return complain(globals, {exit_failure, fmt::format("{}: {}", *program, std::strerror(errno))});
}

} // namespace

void add_measure(CLI::App& app, Globals& globals, int& status) {
    auto no_block = std::make_shared<bool>(false);
    auto* verb =
        add_verb(app,
                 {.name = "measure",
                  .summary = "the gain by affinity; without a subcommand the daemon measures now",
                  .example = "affinityctl measure latency",
                  .answer = order_answer,
                  .manual = "affinityctl-measure(1)"},
                 globals, status, [&globals, no_block] {
                     return tell(globals, {.method = "Measure", .doing = "measuring", .no_block = *no_block});
                 });
    verb->require_subcommand(0, 1);
    add_no_block(*verb, *no_block);
    auto* ttcp = verb->add_subcommand(
        "ttcp", "run affinity-ttcp with the options that follow; without: 2 s over loopback");
    ttcp->allow_extras()->set_help_flag(); // its options are affinity-ttcp's, --help too
    ttcp->fallthrough(false);              // else the verbs above would have to know them
    ttcp->callback([&globals, &status, ttcp] { status = run_ttcp(globals, ttcp->remaining()); });
    add_measure_models(*verb, globals, status);
    add_measure_latency(*verb, globals, status);
    add_measure_sharing(*verb, globals, status);
    add_measure_smt(*verb, globals, status);
    add_measure_cache(*verb, globals, status);
    for (auto* own : verb->get_subcommands({}))
        own->excludes(verb->get_option("--no-block")); // they run here
}

} // namespace affinityctl
