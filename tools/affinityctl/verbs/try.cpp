// SPDX-License-Identifier: Apache-2.0
// affinityctl try, affinityctl keep: a policy for a while, which the daemon takes back unless it is kept.
#include "affinityctl/client/answers.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "host/file.hpp"
#include "host/signals.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityctl {

namespace {

namespace host = affinityd::host;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// clang-format off
const Field try_fields[] = {
    {"policy", "", "text", "the policy"},
    {"outcome", "", "text", "went back, kept or on trial"},
    {"seconds_left", "", "number", "the time until it goes back, 0 if it is over"},
    {"message", "", "text", "the same in words"},
    {"verdict", "", "text?", "better, worse, no difference shown, or not known; null where the daemon was started again"},
    {"sentence", "", "text?", "the same with figures"},
    {"figures", "", "object[]", "without it and with it", figure_fields},
};
constexpr Field keep_fields[] = {
    {"policy", "", "text", "the policy"},
    {"file", "", "text", "its file"},
    {"message", "", "text", "the daemon's report, in lines"},
};
// clang-format on

struct TryOptions {
    std::string subject;
    double seconds = 600;
    bool back = false, no_block = false;
};

/// A policy as a file has it.
struct Tried {
    std::string name, path, text;
};

std::string name_of(const std::string& word) {
    const std::filesystem::path path(word);
    return (path.extension() == ".yaml" ? path.stem() : path.filename()).string();
}

Tried find_tried(const TryOptions& options, const Globals& globals) {
    auto path = file_named(globals, options.subject);
    auto text = need(host::read_file(path));
    if (!text || text->empty())
        throw CallError{exit_failure, path + ": there is no such file, or it is empty"};
    return {name_of(path), std::move(path), std::move(*text)};
}

/// A fault is shown with its line before the daemon is asked, and nothing has changed then.
void begin_trial(const Tried& tried, const TryOptions& options, const Globals& globals) {
    auto checked = need(documents::check(globals, {tried.path}));
    if (checked.code != exit_ok) {
        fmt::print(stderr, "{}", to_text(checked, {.width = 100}));
        throw CallError{exit_findings, tried.path + " has errors: it is not tried"};
    }
    const auto length = fmt::format("{:.0f}", options.seconds);
    auto begun = ask_daemon(globals, "Try", {tried.name, tried.text, length}, {seconds(60), "reading"});
    if (begun) return;
    auto& message = begun.error().message; // names the daemon's copy
    const auto copy = globals.runtime_dir + "/trials/" + tried.name + ".yaml";
    if (const auto at = message.find(copy); at != std::string::npos)
        message.replace(at, copy.size(), tried.path);
    throw begun.error();
}

/// The trial of that policy; null: there is none.
json trial_of(const json& answer, const char* key, const std::string& policy) {
    json found;
    for (const auto& trial : list(answer, key))
        if (text(trial, "policy") == policy) found = trial;
    return found;
}

std::string line_of(const json& trial) {
    const auto until_placed = count(trial, "seconds_until_placed");
    return fmt::format("{}: {} s left; {}; so far {}", text(trial, "policy"), count(trial, "seconds_left"),
                       until_placed > 0 ? fmt::format("as it is for {} s more", until_placed) : "in force",
                       text(trial, "sentence"));
}

/// A line on standard error, which a terminal has once, and other files have every ten seconds.
class Telling {
  public:
    Telling(const Telling&) = delete;
    Telling& operator=(const Telling&) = delete;
    Telling() = default;
    ~Telling() {
        if (is_terminal_ && !shown_.empty()) put("\r\033[K");
    }
    void tell(const std::string& line) {
        const auto now = steady_clock::now();
        if (line == shown_ || (!is_terminal_ && now < next_)) return;
        next_ = now + seconds(10);
        shown_ = line;
        put(is_terminal_ ? "\r" + line + "\033[K" : line + "\n");
    }

  private:
    static void put(const std::string& text) {
        std::fputs(text.c_str(), stderr); // which throws nothing if the terminal has gone
        std::fflush(stderr);
    }
    static bool has_terminal() {
        const char* terminal = std::getenv("TERM");
        return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
    }
    const bool is_terminal_ = has_terminal();
    std::string shown_;
    steady_clock::time_point next_{};
};

/// Until the trial is over, or a signal ends the watching. The daemon may be started again meanwhile. The
/// last answer about the trial.
json watch_trial(const std::string& policy, const Globals& globals) {
    constexpr timespec pause{1, 0};
    constexpr seconds patience{30};
    const auto signals = host::stop_signals();
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    Telling telling;
    json last;
    auto answered = steady_clock::now();
    do {
        const auto answer = ask_daemon_object(globals, "GetTrials");
        if (!answer && steady_clock::now() - answered > patience) throw answer.error();
        if (!answer) continue;
        answered = steady_clock::now();
        last = trial_of(*answer, "trials", policy);
        if (last.is_null()) return trial_of(*answer, "ended", policy);
        telling.tell(line_of(last));
    } while (::sigtimedwait(&signals, nullptr, &pause) <= 0);
    return last;
}

Outcome trial_document(const std::string& policy, const json& trial) {
    const auto left = count(trial, "seconds_left");
    const auto outcome = left > 0 ? "on trial" : trial.is_object() ? text(trial, "outcome") : "went back";
    const auto message =
        left > 0 ? fmt::format("policy {0} is on trial for {1} s more: affinityctl keep {0} installs it, "
                               "affinityctl try {0} --back ends it",
                               policy, left)
                 : fmt::format("the trial of policy {} is over: {}", policy, outcome);
    Document document;
    const auto verdict = text(trial, "verdict");
    document.value = record(try_fields, {policy, outcome, left, message, or_null(verdict),
                                         or_null(text(trial, "sentence")), list(trial, "figures")});
    document.line(message);
    if (!list(trial, "figures").empty()) {
        document.line(text(trial, "sentence"));
        document.add(Document::Table{figure_fields, list(trial, "figures")}).gap = true;
    }
    document.code = verdict == "worse" && left == 0 ? exit_findings : exit_ok;
    return document;
}

Outcome run_try(const TryOptions& options, const Globals& globals) {
    need(check_is_live(globals));
    if (options.back) {
        const auto name = name_of(options.subject);
        need(ask_daemon(globals, "EndTrial", {name, "back"}, {seconds(60), "going back"}));
        return trial_document(name, trial_of(need(ask_daemon_object(globals, "GetTrials")), "ended", name));
    }
    const auto tried = find_tried(options, globals);
    begin_trial(tried, options, globals);
    if (options.no_block)
        return trial_document(tried.name,
                              trial_of(need(ask_daemon_object(globals, "GetTrials")), "trials", tried.name));
    return trial_document(tried.name, watch_trial(tried.name, globals));
}

struct KeepOptions {
    std::string name;
    bool force = false;
};

Outcome run_keep(const KeepOptions& options, const Globals& globals) {
    need(check_is_live(globals));
    const auto answer = need(ask_daemon_object(globals, "GetTrials"));
    const auto& trials = list(answer, "trials");
    if (options.name.empty() && trials.size() != 1)
        return failed(exit_failure, trials.empty() ? "no policy is on trial"
                                                   : "several policies are on trial: name one (affinityctl "
                                                     "status lists them)");
    const auto name = options.name.empty() ? text(trials.front(), "policy") : options.name;
    const auto trial = trial_of(answer, "trials", name);
    if (trial.is_null()) return failed(exit_failure, "policy " + name + " is not on trial");
    const auto file = need(host::read_file(text(trial, "file")));
    if (!file) return failed(exit_failure, "the trial of policy " + name + " is over");
    const auto own = policy_places(globals, name).own;
    need(host::check_replaceable(own));
    const auto before = need(host::read_file(own));
    if (!options.force &&
        std::to_string(before ? affinityd::fnv1a_64(*before) : 0) != text(trial, "own_text"))
        return failed(exit_failure, own + " was changed since the trial began: --force writes over it");
    need(save_policy(own, before, file->substr(file->find('\n') + 1)));
    const auto ended = ask_daemon(globals, "EndTrial", {name, "keep"}, {seconds(60), "keeping"});
    if (!ended) {
        const auto now = need(ask_daemon_object(globals, "GetTrials"));
        if (!trial_of(now, "trials", name).is_null())
            return failed(exit_failure, own + " is written, and the trial goes on: " + ended.error().message);
        if (text(trial_of(now, "ended", name), "outcome") == "kept")
            return failed(exit_failure,
                          own + " is written, but the daemon does not read it: " + ended.error().message);
    }
    const auto message = ended ? text(json::parse(*ended, nullptr, false), "message")
                               : "the trial had ended by then: the daemon reads the file as any other";
    Document document;
    document.value = record(keep_fields, {name, own, message});
    document.line(own + " is written");
    document.line(message);
    return document;
}

} // namespace

void add_try(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "try",
                  .summary = "a policy for a while, in turn with how it is; it goes back",
                  .example = "affinityctl try nginx.yaml --for 10m",
                  .answer = try_fields},
                 globals, status, run_try);
    verb->add_option("FILE", options->subject, "a policy file, or the name of a policy or an example")
        ->required()
        ->check(not_empty());
    verb->add_option("--for", options->seconds, "how long (default: 10m)")
        ->type_name("TIME")
        ->transform(time_from(seconds(10), seconds(86400)));
    verb->add_flag("--back", options->back, "end its trial now");
    verb->add_flag("--no-block", options->no_block, "have it begun, and do not watch it");
    const auto [keep, kept] = add_verb(app,
                                       {.name = "keep",
                                        .summary = "install the policy that is on trial",
                                        .example = "affinityctl keep nginx",
                                        .answer = keep_fields},
                                       globals, status, run_keep);
    keep->add_option("NAME", kept->name, "the policy; without: the only one on trial")->check(not_empty());
    keep->add_flag("--force", kept->force, "write over a file that was changed since the trial began");
}

} // namespace affinityctl
