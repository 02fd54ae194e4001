// SPDX-License-Identifier: Apache-2.0
// Common to all verbs: how each is added with its options, how it fails, and how it asks the daemon.
#pragma once

#include "affinityctl/client/call.hpp"
#include "affinityctl/present/output.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <expected>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

struct Occupancy;

/// A verb as --help and --json-schema show it.
struct Verb {
    const char* name;
    const char* summary;
    const char* example; ///< a command line
    Fields answer{};     ///< of its JSON
    bool is_list = false;
    const char* manual = "affinityctl(1)";
    bool asks_hosts = false; ///< needs the daemon only, so another machine's will do: -H HOST
};

/// Adds a verb whose answer `run` makes; a CallError that it throws is its failure. The exit code goes to
/// `status`.
CLI::App* add_verb(CLI::App& app, const Verb& verb, Globals& globals, int& status,
                   std::function<Outcome()> run);

/// The same with options, which the command line is to fill in.
template <class Options>
std::pair<CLI::App*, Options*> add_verb(CLI::App& app, const Verb& verb, Globals& globals, int& status,
                                        Outcome (*run)(const Options&, const Globals&)) {
    const auto options = std::make_shared<Options>();
    return {add_verb(app, verb, globals, status, [&globals, options, run] { return run(*options, globals); }),
            options.get()};
}

/// For options that mean "all" or "none" where they are left out: an empty text, as of a variable of a script
/// that was never set, means neither.
inline CLI::Validator not_empty() {
    return {[](const std::string& text) {
                return text.empty() ? std::string("expected a value, and this is empty") : std::string();
            },
            ""};
}

/// As CLI::Range, which shows its own names of types in help. `low` and `high` are in it.
template <class T>
CLI::Validator in_range(T low, T high) {
    auto range = CLI::Range(low, high);
    range.description("");
    return range;
}

using Seconds = std::chrono::duration<double>;

/// For ->transform(): a time as policies have it, 300ms or 2s, or a number of `unit`s, which is what it
/// becomes. Both ends are in it.
inline CLI::Validator time_from(Seconds shortest, Seconds longest, Seconds unit = Seconds(1)) {
    return {[=](std::string& text) {
                char* end = nullptr;
                Seconds time = std::strtod(text.c_str(), &end) * unit;
                if (*end != '\0')
                    time = affinityd::parse_duration(text).value_or(std::chrono::milliseconds(-1));
                if (!(time >= shortest && time <= longest)) // nan is neither
                    return fmt::format("expected a time from {:g} to {:g} s, as 300ms or 2s",
                                       shortest.count(), longest.count());
                text = fmt::format("{}", time / unit);
                return std::string();
            },
            ""};
}

/// An option that takes a time, in seconds where no unit is given, of `shortest` to an hour.
inline CLI::Option* add_time(CLI::App& verb, const std::string& name, std::chrono::milliseconds& into,
                             std::chrono::milliseconds shortest, const std::string& help) {
    return verb
        .add_option_function<double>(
            name,
            [&into](const double& seconds) {
                into = std::chrono::round<std::chrono::milliseconds>(Seconds(seconds));
            },
            help)
        ->type_name("TIME")
        ->transform(time_from(shortest, std::chrono::hours(1)));
}

/// An option that may be given again; each takes one value.
inline CLI::Option* add_repeated(CLI::App& verb, const std::string& name, std::vector<std::string>& into,
                                 const std::string& help, const std::string& type) {
    return verb.add_option(name, into, help)
        ->type_name(type)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// --svg FILE. `help`: "also draw it into this file".
inline CLI::Option* add_picture(CLI::App& verb, std::string& into, const std::string& help) {
    return verb.add_option("--svg", into, help + " (- is standard output)")
        ->type_name("FILE")
        ->check(not_empty());
}

/// For record(): the key is left out.
inline const nlohmann::json no_key(nlohmann::json::value_t::discarded);

/// A fault that an answer cannot be made without.
[[nodiscard]] std::unexpected<CallError> failed(const affinityd::Error& error);
[[nodiscard]] std::unexpected<CallError> failed(Exit code, std::string message);

/// The value; without one the verb ends, and says why.
template <class T, class E>
T need(std::expected<T, E> value) {
    if constexpr (std::is_same_v<E, CallError>) {
        if (!value) throw CallError(value.error());
    } else {
        if (!value) throw CallError(failed(value.error()).error());
    }
    if constexpr (!std::is_void_v<T>) return std::move(*value);
}

/// " (did you mean 'web'?)", or "" if no name is near.
[[nodiscard]] std::string guess(std::string_view asked, const std::vector<std::string>& names);

/// Calls a method of the daemon. A recorded machine has none: with --root the error is one of usage.
[[nodiscard]] std::expected<std::string, CallError> ask_daemon(const Globals& globals, const char* method,
                                                               const std::vector<std::string>& arguments = {},
                                                               const Patience& patience = {});

/// The same; the answer is an object.
[[nodiscard]] std::expected<nlohmann::json, CallError>
ask_daemon_object(const Globals& globals, const char* method, const std::vector<std::string>& arguments = {});

/// The daemon's GetStatus; null if none answers, or with --root: for verbs that work without it.
[[nodiscard]] nlohmann::json status_if_any(const Globals& globals);

/// Throws for a folder of another kind: it would be a machine without anything, as no file says so itself.
void check_root(const std::string& folder);

/// The fault of --root, for what only the running machine can do.
[[nodiscard]] std::expected<void, CallError> check_is_live(const Globals& globals);

/// The fault of -H, for what reads files of the machine.
[[nodiscard]] std::expected<void, CallError> check_is_here(const Globals& globals, const std::string& verb);

/// The daemon's Explain: of a task, of queues and interrupts, or of a policy or unit.
[[nodiscard]] Document explanation(const nlohmann::json& answer);

/// The answers of verbs without options, for verbs that show several. They throw as verbs do.
namespace documents {
[[nodiscard]] Outcome status(const Globals& globals);
[[nodiscard]] Outcome history(const Globals& globals);
/// `paths`: of policies; empty: the usual ones.
[[nodiscard]] Outcome check(const Globals& globals, const std::vector<std::string>& paths);
[[nodiscard]] Outcome plan(const Globals& globals, const std::vector<std::string>& paths);
/// With the queues and tasks of a status or plan.
[[nodiscard]] Outcome nics(const Globals& globals, nlohmann::json status);
/// The picture of the machine with these tasks and interrupts on it; its value: the seats of each CPU.
[[nodiscard]] Outcome topology(Globals globals, Occupancy occupancy);
} // namespace documents
/// The file of a policy in an editor, until it is saved, or not. `proposed`: a text for a new policy, which
/// is asked about, and in an editor only on a terminal. Throws as verbs do.
[[nodiscard]] Outcome edit_policy(const Globals& globals, const std::string& name,
                                  const std::optional<std::string>& proposed);
/// "nginx 812, nginx 813 and 2 more": the tasks of an interrupt or queue of `nics`; "-" for none.
[[nodiscard]] std::string tasks_text(const nlohmann::json& row);

/// Each adds a verb, or several that belong together.
void add_edit(CLI::App& app, Globals& globals, int& status); ///< cat, edit
void add_test(CLI::App& app, Globals& globals, int& status);
void add_topology(CLI::App& app, Globals& globals, int& status);
void add_cpus(CLI::App& app, Globals& globals, int& status);
void add_irqs(CLI::App& app, Globals& globals, int& status);
void add_nics(CLI::App& app, Globals& globals, int& status);
void add_check(CLI::App& app, Globals& globals, int& status);
void add_doctor(CLI::App& app, Globals& globals, int& status);
void add_suggest(CLI::App& app, Globals& globals, int& status);
void add_plan(CLI::App& app, Globals& globals, int& status);
void add_try(CLI::App& app, Globals& globals, int& status); ///< try, keep
void add_status(CLI::App& app, Globals& globals, int& status);
void add_metrics(CLI::App& app, Globals& globals, int& status);
void add_watch(CLI::App& app, Globals& globals, int& status);
void add_explain(CLI::App& app, Globals& globals, int& status);
void add_orders(CLI::App& app, Globals& globals, int& status); ///< reload, apply, release, measure
void add_policies(CLI::App& app, Globals& globals, int& status);
void add_history(CLI::App& app, Globals& globals, int& status);
void add_report(CLI::App& app, Globals& globals, int& status);
void add_locality(CLI::App& app, Globals& globals, int& status);
void add_sharers(CLI::App& app, Globals& globals, int& status);
void add_intruders(CLI::App& app, Globals& globals, int& status);

/// The status of each of globals.hosts: a line for each, then their problems. A host that says nothing, or
/// goes on saying something, holds up none of the others, and the whole for fifteen seconds.
[[nodiscard]] Document side_by_side(const Globals& globals);

/// Prints, for the completions of shells, all that may stand for the last of these words, each with a tab and
/// a line about it; nothing: a file. `all` has every verb. The exit code.
[[nodiscard]] int complete(const CLI::App& all, Globals globals, std::vector<std::string> words);

/// Subcommands of `measure`: experiments.
void add_measure_models(CLI::App& measure, Globals& globals, int& status);
void add_measure_latency(CLI::App& measure, Globals& globals, int& status);
void add_measure_sharing(CLI::App& measure, Globals& globals, int& status);
void add_measure_smt(CLI::App& measure, Globals& globals, int& status);
void add_measure_cache(CLI::App& measure, Globals& globals, int& status);

} // namespace affinityctl
