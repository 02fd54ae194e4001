// SPDX-License-Identifier: Apache-2.0
// affinityctl history: what was measured, over time.
#include "accounting/measurements.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/not_empty.hpp"
#include "affinityctl/verbs/picture.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/history_chart.hpp"
#include "affinityctl/views/history_text.hpp"
#include "status/report_text.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using nlohmann::json;

struct HistoryOptions {
    std::string kind;
    std::string path;
    std::string svg;
    std::string state_dir; ///< "": the daemon is asked
    std::size_t count = 20;
};

const std::string standard_state_dir = "/var/lib/affinityd";

bool has_utf8() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        const char* value = std::getenv(name);
        if (value == nullptr || *value == '\0') continue;
        const std::string text = value;
        return text.find("UTF-8") != std::string::npos || text.find("utf8") != std::string::npos;
    }
    return false;
}

/// The path of the last run, preferably of one that was done.
std::string last_path(const json& records) {
    std::string any;
    for (auto record = records.rbegin(); record != records.rend(); ++record) {
        if (record->value("kind", "") != "ttcp") continue;
        auto path = record->value("path", "");
        if (record->value("outcome", "") == "done") return path;
        if (any.empty()) any = std::move(path);
    }
    return any;
}

/// Draws the path of the command line, else the last.
int draw(const json& answer, const HistoryOptions& options) {
    const auto& records = answer.at("records");
    const auto path = options.path.empty() ? last_path(records) : options.path;
    json trend = json::object();
    for (const auto& one : answer.at("trends"))
        if (one.value("path", "") == path) trend = one;
    return write_picture(options.svg, history_svg(points_of(records, path), path, trend));
}

/// From the file; `failed`: why the daemon was not asked, or did not answer.
std::expected<std::string, CallError> read_file(const HistoryOptions& options, const std::string& kind,
                                                const CallError& failed) {
    const auto folder = options.state_dir.empty() ? standard_state_dir : options.state_dir;
    const auto report = affinityd::accounting::read_history(folder, kind);
    if (!report) return std::unexpected(CallError{exit_failure, report.error().to_string()});
    if (*report) return affinityd::status::to_text(**report);
    if (!failed.message.empty()) return std::unexpected(failed);
    return std::unexpected(CallError{exit_failure, folder + ": there is no measurement history"});
}

/// The newest records of a kind, "": of all.
std::expected<json, CallError> history_of(const Globals& globals, const HistoryOptions& options,
                                          const std::string& kind) {
    std::expected<std::string, CallError> text = std::unexpected(CallError{});
    if (options.state_dir.empty()) text = ask_daemon(globals, "GetHistory", {kind});
    const bool is_alone = !options.state_dir.empty() ||
                          (!text && text.error().code == exit_no_daemon && globals.is_standard_daemon());
    if (is_alone) text = read_file(options, kind, text.error());
    if (!text) return std::unexpected(text.error());
    auto answer = json::parse(*text, nullptr, false);
    if (answer.is_object()) return answer;
    return std::unexpected(
        CallError{exit_failure, "the daemon's answer cannot be read: is it of another version?"});
}

int show_history(const Globals& globals, const HistoryOptions& options) {
    const auto answer = history_of(globals, options, options.kind);
    if (!answer) return complain(answer.error());
    if (globals.json)
        fmt::print("{}\n", answer->dump());
    else
        fmt::print("{}", history_text(*answer, {options.path, options.count, has_utf8()}, globals.color));
    return exit_ok;
}

int run(const Globals& globals, const HistoryOptions& options) {
    if (!options.svg.empty() && !options.kind.empty() && options.kind != "ttcp")
        return complain({exit_usage, "--svg draws throughput, which is --kind ttcp"});
    const auto picture = check_picture(globals, options.svg);
    if (!picture) return complain(picture.error());
    int status = exit_ok;
    if (refuses_root(globals, status)) return status;
    if (options.svg != "-") status = show_history(globals, options);
    if (options.svg.empty() || status != exit_ok) return status;
    const auto throughput = history_of(globals, options, "ttcp"); // which others crowd out of all kinds
    return throughput ? draw(*throughput, options) : complain(throughput.error());
}

} // namespace

void add_history(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand("history",
                                    "what was measured so far, and whether the last run is as it should be");
    const auto options = std::make_shared<HistoryOptions>();
    verb->add_option("--kind", options->kind, "only these")
        ->check(
            CLI::IsMember({"ttcp", "models", "passive", "locality", "latency", "sharing", "smt", "cache"}));
    verb->add_option("--path", options->path,
                     "the path of the sparkline and the picture: loopback or host:port; default: "
                     "all, the last");
    verb->add_option("--state-dir", options->state_dir,
                     "read the history in this folder, without a daemon (one that does not run keeps it in "
                     "/var/lib/affinityd)")
        ->type_name("DIR");
    verb->add_option("-n,--count", options->count, "rows of the table")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    verb->add_option("--svg", options->svg,
                     "also draw throughput over time into this file (- is standard output)")
        ->type_name("FILE")
        ->check(not_empty());
    verb->callback([&globals, &status, options] { status = run(globals, *options); });
}

} // namespace affinityctl
