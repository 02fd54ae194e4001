// SPDX-License-Identifier: Apache-2.0
// affinityctl: a table of verbs.
#include "affinityctl/present/globals.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "policy/diagnostic.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

using namespace affinityctl;

namespace {

using Add = void (*)(CLI::App&, Globals&, int&);

/// In the order of --help: the present state, plans, the machine, changes, measurements.
constexpr Add verbs[] = {add_status,   add_watch,   add_plan,      add_explain, add_check,    add_test,
                         add_doctor,   add_suggest, add_policies,  add_edit,    add_topology, add_cpus,
                         add_nics,     add_irqs,    add_orders,    add_try,     add_history,  add_report,
                         add_locality, add_sharers, add_intruders, add_metrics};

/// Words of other programs for what a verb does.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> synonyms{
    {{"undo", "affinityctl release"},
     {"restore", "affinityctl release"},
     {"validate", "affinityctl check"},
     {"top", "affinityctl watch"},
     {"ps", "affinityctl status POLICY"},
     {"list", "affinityctl policies"},
     {"show", "affinityctl policies show NAME"},
     {"why", "affinityctl explain"},
     {"diff", "affinityctl plan"}}};

/// --help in 80 columns and 24 lines, in the words of the manual.
class HelpPage : public CLI::Formatter {
  public:
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
        const auto below = make_subcommands(app, mode);
        const auto footer = wrapped(app->get_footer(), "", page);
        if (app->get_parent() == nullptr)
            return "Usage: affinityctl [--json] [--root DIR] [-H HOST] VERB [--help]; affinityctl(1)" + below;
        auto text = wrapped(app->get_description(), "", page) + make_usage(app, name);
        for (const bool positional : {true, false})
            for (const auto* option : app->get_options())
                if (!option->get_group().empty() && option->get_positional() == positional &&
                    option != app->get_help_ptr())
                    text += make_option(option, positional);
        return text + below + "\n" + footer;
    }
    std::string make_option(const CLI::Option* option, bool is_positional) const override {
        constexpr std::size_t column = 22;
        const auto type = option->get_type_name();
        auto left = "  " + option->get_name(is_positional, !is_positional);
        if (const auto values = type.find('{'); values != std::string::npos)
            left += " " + type.substr(values, type.find('}') + 1 - values);
        else if (!type.empty() && !is_positional)
            left += " " + type.substr(0, type.find(':'));
        auto text = option->get_description();
        if (const auto usual = option->get_default_str(); !usual.empty() && usual != "false")
            text += " (default: " + usual + ")";
        if (left.size() + 2 <= column) return wrapped(text, left.append(column - left.size(), ' '), page);
        return left + "\n" + wrapped(text, std::string(column, ' '), page);
    }
    std::string make_subcommand(const CLI::App* verb) const override {
        return wrapped(verb->get_description(), fmt::format("  {:<13}", verb->get_name()), page);
    }

  private:
    static constexpr Page page{.width = 80};
};

/// Standard output is a terminal that shows colours, and NO_COLOR is not set.
bool has_color() {
    const char* terminal = std::getenv("TERM");
    const bool is_dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
    return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr && !is_dumb;
}

/// The words of the command line; `help VERB` and `version` are options of other programs, too.
std::vector<std::string> words_of(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (words.empty()) return words;
    if (words[0] == "version") words[0] = "--version";
    if (words[0] == "help") {
        words.erase(words.begin());
        words.emplace_back("--help");
    }
    return words;
}

/// The first word that stands where a verb should, "" for none.
std::string verb_in(const std::vector<std::string>& words) {
    for (std::size_t at = 0; at < words.size(); ++at)
        if (words[at] == "--root" || words[at] == "--runtime-dir")
            ++at; // its value
        else if (!words[at].starts_with('-'))
            return words[at];
    return {};
}

std::string unknown_verb(const std::vector<std::string>& known, const std::string& word) {
    const auto text = "there is no verb " + affinityd::policy::in_quotes(word);
    const auto found =
        std::ranges::find(synonyms, word, &std::pair<std::string_view, std::string_view>::first);
    if (found != synonyms.end()) return fmt::format("{}: {}", text, found->second);
    const auto hint = guess(word, known);
    return text + (hint.empty() ? " (affinityctl --help lists them)" : hint);
}

/// The message about a command line that is wrong.
std::string usage_error(const CLI::App& cli, const CLI::ParseError& error,
                        const std::vector<std::string>& words) {
    std::vector<std::string> names, options;
    const CLI::App* verb = nullptr;
    const auto word = verb_in(words);
    for (const auto* each : cli.get_subcommands({})) {
        names.push_back(each->get_name());
        if (each->get_name() == word) verb = each;
    }
    if (!word.empty() && verb == nullptr) return unknown_verb(names, word);
    std::string message = error.what();
    while (verb != nullptr && !verb->get_subcommands().empty())
        verb = verb->get_subcommands().front();
    for (const auto* app : {static_cast<const CLI::App*>(&cli), verb})
        for (const auto* option : app == nullptr ? std::vector<const CLI::Option*>{} : app->get_options())
            options.push_back(option->get_name());
    for (const auto& each : words)
        if (const auto name = each.substr(0, each.find('='));
            name.starts_with("--") && message.find(name) != std::string::npos)
            if (std::ranges::find(options, name) == options.end()) message += guess(name, options);
    std::string path;
    for (; verb != nullptr && verb->get_parent() != nullptr; verb = verb->get_parent())
        path = verb->get_name() + " " + path;
    return fmt::format("{} (see affinityctl {}--help)", message, path);
}

int run(const std::vector<std::string>& words) {
    Globals globals;
    globals.color = has_color();
    int status = exit_ok;
    CLI::App cli("", "affinityctl");
    cli.formatter(std::make_shared<HelpPage>());
    cli.set_version_flag("--version", "affinityctl " AFFINITYD_VERSION);
    cli.add_flag("--json", globals.json);
    cli.add_option("--root", globals.root);
    cli.add_option("--runtime-dir", globals.runtime_dir);
    cli.add_option("-H,--host", globals.hosts)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    cli.fallthrough(); // these may also follow the verb
    cli.require_subcommand(1);
    for (const Add add : verbs)
        add(cli, globals, status);
    if (!words.empty() && words[0] == "--complete")
        return complete(cli, globals, {words.begin() + 1, words.end()});
    try {
        cli.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return cli.exit(error);
        return complain(globals, {exit_usage, usage_error(cli, error, words)});
    }
    return status;
}

} // namespace

int main(int argc, char** argv) {
    hold_standard_streams();
    try {
        return end_output(run(words_of(argc, argv)));
    } catch (const std::system_error& error) { // fmt's, where a long text cannot be written, or another one
        const int status = end_output(exit_ok, error.code().value());
        if (status == exit_ok) std::fprintf(stderr, "affinityctl: %s\n", error.what());
        return exit_failure;
    }
}
