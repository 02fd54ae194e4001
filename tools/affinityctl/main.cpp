// SPDX-License-Identifier: Apache-2.0
// affinityctl: a table of verbs.
#include "affinityctl/values/standard_output.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "policy/diagnostic.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

using namespace affinityctl;

namespace {

using Add = void (*)(CLI::App&, Globals&, int&);

/// In the order of --help: the present state, plans, the machine, changes, measurements.
constexpr Add verbs[] = {add_status,   add_watch,   add_plan,    add_explain,  add_check,  add_policies,
                         add_topology, add_cpus,    add_nics,    add_irqs,     add_reload, add_apply,
                         add_release,  add_measure, add_history, add_locality, add_sharers};

/// A terminal that can, and nobody says no.
bool has_color() {
    const char* terminal = std::getenv("TERM");
    const bool is_dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
    return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr && !is_dumb;
}

/// The first word that stands where a verb should and is none; "": there is no such word.
std::string_view unknown_verb(const std::vector<std::string>& names, int argc, char** argv) {
    for (int at = 1; at < argc; ++at) {
        const std::string_view word = argv[at];
        if (word == "--root" || word == "--runtime-dir")
            ++at; // its value
        else if (!word.starts_with('-'))
            return std::ranges::find(names, word) == names.end() ? word : std::string_view();
    }
    return {};
}

int complain_of_verb(const std::vector<std::string>& names, std::string_view word) {
    const std::vector<std::string_view> words(names.begin(), names.end());
    const auto hint = affinityd::policy::did_you_mean(word, words);
    fmt::print(stderr, "affinityctl: there is no verb {}{}\n", affinityd::policy::in_quotes(word),
               hint.empty() ? " (affinityctl --help lists them)" : " (" + hint + ")");
    return exit_usage;
}

int run(int argc, char** argv) {
    Globals globals;
    globals.color = has_color();
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
        std::vector<std::string> names;
        for (const auto* verb : cli.get_subcommands({}))
            names.push_back(verb->get_name());
        const auto word = unknown_verb(names, argc, argv);
        if (error.get_exit_code() != 0 && !word.empty()) return complain_of_verb(names, word);
        return cli.exit(error) == 0 ? exit_ok : exit_usage;
    }
    return status;
}

} // namespace

int main(int argc, char** argv) {
    hold_standard_streams();
    try {
        return end_output(run(argc, argv));
    } catch (const std::system_error& error) { // fmt's, where a long text cannot be written, or another one
        const int status = end_output(exit_ok, error.code().value());
        if (status == exit_ok) std::fprintf(stderr, "affinityctl: %s\n", error.what());
        return exit_failure;
    }
}
