// SPDX-License-Identifier: Apache-2.0
// Common to all verbs: how each is added, how it fails, and how it asks the daemon.
#pragma once

#include "affinityctl/client/call.hpp"
#include "affinityctl/present/output.hpp"
#include "base/error.hpp"

#include <expected>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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

/// The fault of --root, for what only the running machine can do.
[[nodiscard]] std::expected<void, CallError> check_is_live(const Globals& globals);

/// The daemon's Explain: of a task, of queues and interrupts, or of a policy or unit.
[[nodiscard]] Document explanation(const nlohmann::json& answer);

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
void add_orders(CLI::App& app, Globals& globals, int& status); ///< reload, apply, release, measure
void add_policies(CLI::App& app, Globals& globals, int& status);
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
