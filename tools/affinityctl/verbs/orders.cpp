// SPDX-License-Identifier: Apache-2.0
// affinityctl reload, apply, release, acknowledge, measure: orders to the daemon. Subcommands of measure are
// experiments by this program.
#include "affinityctl/client/answers.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "measure/program.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityctl {

namespace {

/// A pass over a large and busy machine may take minutes, and goes on when its caller has gone.
constexpr std::chrono::minutes longest_work{10};

constexpr Field counted_fields[] = {
    {"threads", "", "count", "threads"},
    {"interrupts", "", "count", "interrupts"},
    {"steering", "", "count", "steering settings"},
    {"units", "", "count", "units"},
};
constexpr Field reported_fields[] = {
    {"name", "", "text", "its name"},
    {"placed", "", "object", "changes that were made", counted_fields},
    {"in_place", "", "object", "those that needed no change", counted_fields},
    {"put_back", "", "object", "those that were restored", counted_fields},
    {"kept_off", "", "count", "threads of others that left its exclusive CPUs"},
    {"left", "", "count", "masks left as another program has set them"},
    {"put_off", "", "count", "tasks that are not placed for now"},
    {"refused", "", "count", "changes that were refused"},
    {"not_put_back", "", "count", "those that could not be restored"},
    {"reason", "", "text?", "the first of the reasons why something was refused or not restored"},
};
constexpr Field order_fields[] = {
    {"ok", "", "flag", "all of it was done"},
    {"dry_run", "", "flag*", "nothing was changed"},
    {"message", "", "text", "the report, in lines"},
    {"policies", "", "object[]", "the report by policy", reported_fields},
};

struct Order {
    std::string method;
    std::string doing;      ///< for the progress line: "applying"
    std::string argument{}; ///< of Release
    bool no_block = false;  ///< it is begun, and not waited for
};

/// Has it done. The answer is the daemon's report, also that it failed.
Outcome tell(const Globals& globals, const Order& order) {
    const auto answer = order.no_block ? ask_daemon(globals, "Begin", {order.method, order.argument})
                        : order.method == "Release"
                            ? ask_daemon(globals, "Release", {order.argument}, {longest_work, order.doing})
                            : ask_daemon(globals, order.method.c_str(), {}, {longest_work, order.doing});
    Document document;
    if (!answer) {
        document.value =
            record(order_fields, {false, no_key, answer.error().message, nlohmann::json::array()});
        document.complaints.push_back("affinityctl: " + answer.error().message);
        document.code = answer.error().code;
        return document;
    }
    document.value = nlohmann::json::parse(*answer, nullptr, false);
    const auto message = text(document.value, "message");
    if (!message.empty()) document.line(message);
    document.code = member(document.value, "ok") == true ? exit_ok : exit_failure;
    return document;
}

std::pair<CLI::App*, Order*> add_order(CLI::App& app, Verb verb, Order order, Globals& globals, int& status) {
    verb.answer = order_fields;
    const auto kept = std::make_shared<Order>(std::move(order));
    auto* added = add_verb(app, verb, globals, status, [kept, &globals] { return tell(globals, *kept); });
    added->add_flag("--no-block", kept->no_block, "have it begun, and do not wait for its end");
    return {added, kept.get()};
}

struct Acknowledgement {
    std::string name;
    double seconds = 30 * 86'400.0;
};
constexpr Field problem_names[] = {
    {"name", "NAME", "text", "the name of a problem"},
    {"severity", "SEVERITY", "text", "attention, settling or acknowledged"},
    {"until", "UNTIL", "time*", "acknowledged until then"},
    {"", "PROBLEM", "prose", "", {}, sentence_of},
};
constexpr Field acknowledged_fields[] = {
    {"acknowledged", "", "text{}", "problems that are acknowledged, there or not, each with its end"},
    {"problems", "", "object[]", "the problems that there are", problem_names},
};

/// The one that is called so, or the only one of this kind; "": there is none.
std::string full_name(const std::set<std::string>& names, const std::string& wanted) {
    std::vector<std::string> found;
    for (const auto& name : names)
        if (name == wanted)
            return name;
        else if (name.starts_with(wanted + "/"))
            found.push_back(name);
    return found.size() == 1 ? found.front() : "";
}

/// Without a name: a table of all problems.
Outcome acknowledge(const Acknowledgement& wanted, const Globals& globals) {
    const auto status = need(ask_daemon_object(globals, "GetStatus"));
    const auto& problems = list(status, "problems");
    const auto known = member(status, "acknowledged");
    Document document;
    if (wanted.name.empty()) {
        document.value = record(acknowledged_fields, {known, problems});
        if (!problems.empty()) document.add(Document::Table{problem_names, problems});
        if (problems.empty()) document.line("there are no problems");
        for (const auto& [name, end] : known.items())
            if (std::ranges::find(problems, name, [](const auto& one) { return text(one, "name"); }) ==
                problems.end())
                document.line(fmt::format("{} is acknowledged until {}, and not there now", name,
                                          end.get<std::string>()));
        return document;
    }
    std::set<std::string> names;
    if (wanted.seconds > 0)
        for (const auto& problem : problems)
            names.insert(text(problem, "name"));
    else
        for (const auto& [name, end] : known.items())
            names.insert(name);
    const auto name = full_name(names, wanted.name);
    if (name.empty())
        return failed(exit_failure,
                      wanted.name +
                          ": no single problem has this name or kind; their names: affinityctl acknowledge");
    const auto seconds = std::to_string(std::llround(wanted.seconds));
    const auto answer = nlohmann::json::parse(need(ask_daemon(globals, "Acknowledge", {name, seconds})));
    document.value = record(acknowledged_fields, {answer, problems});
    const auto end = text(answer, name.c_str());
    document.line(name + (end.empty() ? " counts again" : " is acknowledged until " + end));
    return document;
}

/// Becomes affinity-ttcp; returns only if that fails.
CallError run_ttcp(const Globals& globals, const std::vector<std::string>& arguments) {
    if (const auto live = check_is_live(globals); !live) return live.error();
    const auto program = affinityd::measure::find_ttcp();
    if (!program) return {exit_failure, "affinity-ttcp is not installed beside this program"};
    std::vector<std::string> all{*program};
    if (arguments.empty()) all.insert(all.end(), {"--loopback", "--seconds", "2"});
    all.insert(all.end(), arguments.begin(), arguments.end());
    if (globals.json) all.emplace_back("--json");
    std::vector<char*> argv;
    for (auto& argument : all)
        argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    return {exit_failure, fmt::format("{}: {}", *program, std::strerror(errno))};
}

void add_measure(CLI::App& app, Globals& globals, int& status) {
    auto* verb = add_order(app,
                           {.name = "measure",
                            .summary = "the gain by affinity; alone, the daemon measures now",
                            .example = "affinityctl measure latency",
                            .manual = "affinityctl-measure(1)"},
                           {"Measure", "measuring"}, globals, status)
                     .first;
    verb->require_subcommand(0, 1);
    auto* ttcp = verb->add_subcommand(
        "ttcp", "run affinity-ttcp with the options that follow; without: 2 s over loopback");
    ttcp->allow_extras()->set_help_flag(); // its options are affinity-ttcp's, --help too
    ttcp->fallthrough(false);              // else the verbs above would have to know them
    ttcp->callback(
        [&globals, &status, ttcp] { status = complain(globals, run_ttcp(globals, ttcp->remaining())); });
    for (const auto add :
         {add_measure_models, add_measure_latency, add_measure_sharing, add_measure_smt, add_measure_cache})
        add(*verb, globals, status);
    for (auto* own : verb->get_subcommands({}))
        own->excludes(verb->get_option("--no-block")); // they run here
}

} // namespace

void add_orders(CLI::App& app, Globals& globals, int& status) {
    add_order(
        app,
        {.name = "reload", .summary = "read policies and settings again", .example = "affinityctl reload"},
        {"Reload", "reloading"}, globals, status);
    add_order(app,
              {.name = "apply",
               .summary = "look at everything again now, also at what was released",
               .example = "affinityctl apply"},
              {"Apply", "applying"}, globals, status);
    const auto [release, order] =
        add_order(app,
                  {.name = "release",
                   .summary = "put back what was changed, until the next apply or reload",
                   .example = "affinityctl release nginx"},
                  {"Release", "releasing"}, globals, status);
    release->add_option("what", order->argument, "a policy's name or a PID; without: everything");
    const auto [verb, wanted] =
        add_verb(app,
                 {.name = "acknowledge",
                  .summary = "take a problem out of the verdict of status for a time",
                  .example = "affinityctl acknowledge events/process_events --for 30d",
                  .answer = acknowledged_fields},
                 globals, status, acknowledge);
    verb->add_option("PROBLEM", wanted->name,
                     "its name, or its kind where it is the only one; without: all, with their names")
        ->check(not_empty());
    verb->add_option("--for", wanted->seconds, "how long; 0: it counts again")
        ->type_name("TIME")
        ->transform(time_from(Seconds(0), std::chrono::days(366)))
        ->default_str("30d");
    add_measure(app, globals, status);
}

} // namespace affinityctl
