// SPDX-License-Identifier: Apache-2.0
// affinityctl history: measurements over time.
#include "accounting/measurements.hpp"
#include "affinityctl/client/answers.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "measure/statistics.hpp"
#include "status/json.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using nlohmann::json;

struct HistoryOptions {
    std::string kind;
    std::string path; ///< of the chart; "": all in the text, the last in the picture
    std::string svg;
    std::string state_dir; ///< "": the daemon is asked
    std::size_t count = 20;
};

double number_of(const json& object, const char* key) {
    const auto value = member(object, key);
    return value.is_number() ? value.get<double>() : 0;
}

double gbit_of(const json& object, const char* key) { return number_of(object, key) / 1e9; }

std::string x_text(double seconds) { return local_time(static_cast<long long>(seconds)); }

/// The throughput over one path, in Gbit/s. A run that failed may have no path.
Document::Chart chart_of(const json& records, const std::string& path, const json& trend) {
    Document::Chart chart{.title = "Throughput" + (path.empty() ? "" : " over " + path),
                          .unit = "Gbit/s",
                          .series = {{path, {}}},
                          .x_text = x_text};
    for (const auto& one : records) {
        const bool done = text(one, "outcome") == "done";
        if (text(one, "kind") != "ttcp" ||
            (text(one, "path") != path && (done || !text(one, "path").empty())))
            continue;
        chart.series[0].points.push_back(
            {.x = number_of(one, "time"), .y = gbit_of(one, "bits_per_second"), .failed = !done});
    }
    if (trend.value("direction", "unknown") != "unknown")
        chart.expected = Document::Point{.y = gbit_of(trend, "median"),
                                         .low = gbit_of(trend, "low"),
                                         .high = gbit_of(trend, "high"),
                                         .label = "median"};
    return chart;
}

void add_trend(const json& trend, const json& records, Document& into) {
    into.add(chart_of(records, text(trend, "path"), trend), Document::Where::text).gap = true;
    const auto direction = text(trend, "direction");
    const char* verdict = direction == "down" ? "REGRESSION: below what earlier runs predict"
                          : direction == "up" ? "above what earlier runs predict"
                                              : "as expected";
    const auto words =
        direction == "unknown"
            ? "too few runs to say whether the last one is as it should be"
            : fmt::format("last run {} % against the median of {:.3f} Gbit/s; {} ({:.3f} to {:.3f})",
                          affinityd::measure::signed_percent(number_of(trend, "change"), 1),
                          gbit_of(trend, "median"), verdict, gbit_of(trend, "low"), gbit_of(trend, "high"));
    into.line(words, "  ").where = Document::Where::text;
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

/// The path of the command line, else the last.
void add_chart(const json& answer, const HistoryOptions& options, Document& into) {
    const auto path = options.path.empty() ? last_path(answer.at("records")) : options.path;
    json trend = json::object();
    for (const auto& one : answer.at("trends"))
        if (text(one, "path") == path) trend = one;
    auto chart = chart_of(answer.at("records"), path, trend);
    into.title = chart.title;
    if (chart.series[0].points.empty()) {
        into.line("none is among these measurements").where = Document::Where::picture;
        return;
    }
    chart.title.clear();
    into.add(std::move(chart), Document::Where::picture);
    into.line("Shaded: the range that earlier runs predict for the last one. x: failed or skipped.").where =
        Document::Where::picture;
}

/// The newest records of a kind, "": of all: from the daemon, or, where none keeps the standard folder, from
/// the file.
json history_of(const Globals& globals, const HistoryOptions& options, const std::string& kind) {
    CallError unasked;
    if (options.state_dir.empty()) {
        auto answer = ask_daemon_object(globals, "GetHistory", {kind});
        if (answer) return std::move(*answer);
        if (answer.error().code != exit_no_daemon || !globals.is_standard_daemon()) throw answer.error();
        unasked = answer.error();
    }
    const auto folder = options.state_dir.empty() ? "/var/lib/affinityd" : options.state_dir;
    const auto report = need(affinityd::accounting::read_history(folder, kind));
    if (report) return json::parse(affinityd::status::to_text(*report));
    if (!unasked.message.empty()) throw unasked;
    throw CallError{exit_failure, folder + ": there is no measurement history"};
}

Document history_document(json answer, const HistoryOptions& options) {
    Document document;
    const auto& records = answer.at("records");
    const auto line = [&](std::string text) { document.line(std::move(text)).where = Document::Where::text; };
    if (!answer.value("kept", true))
        line("the daemon keeps no history: only what it measured since its start");
    if (const auto fault = text(answer, "fault"); !fault.empty())
        line("the history cannot be read: " + fault);
    if (records.empty()) {
        line("nothing has been measured yet (the local part of reads is kept once an hour: affinityctl "
             "status has "
             "it as it is now)");
    } else {
        Document::Table table{record_fields};
        const auto shown = std::min(records.size(), options.count);
        for (auto row = records.end() - static_cast<std::ptrdiff_t>(shown); row != records.end(); ++row)
            table.rows.push_back(*row);
        document.add(std::move(table), Document::Where::text);
        for (const auto& trend : answer.at("trends"))
            if (options.path.empty() || text(trend, "path") == options.path)
                add_trend(trend, records, document);
    }
    document.value = std::move(answer);
    return document;
}

Outcome run_history(const HistoryOptions& options, const Globals& globals) {
    if (!options.svg.empty() && !options.kind.empty() && options.kind != "ttcp")
        return failed(exit_usage, "--svg draws throughput, which is --kind ttcp");
    need(check_picture(globals, options.svg));
    need(check_is_live(globals));
    auto document = history_document(history_of(globals, options, options.kind), options);
    document.by_columns = true;
    if (options.svg.empty()) return document;
    // Others crowd it out of all kinds.
    add_chart(history_of(globals, options, "ttcp"), options, document);
    document.picture = options.svg;
    return document;
}

} // namespace

Outcome documents::history(const Globals& globals) { return run_history({}, globals); }

void add_history(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "history",
                  .summary = "measurements so far, and whether the last is as expected",
                  .example = "affinityctl history --kind ttcp --svg throughput.svg",
                  .answer = history_answer,
                  .asks_hosts = true},
                 globals, status, run_history);
    verb->add_option("--kind", options->kind, "only these")
        ->check(CLI::IsMember({"ttcp", "models", "passive", "locality", "trial", "auto", "latency", "sharing",
                               "smt", "cache"}));
    verb->add_option(
        "--path", options->path,
        "the path of the sparkline and the picture: loopback or host:port; default: all, the last");
    verb->add_option("--state-dir", options->state_dir,
                     "read the history in this folder, without a daemon (one that does not run keeps it in "
                     "/var/lib/affinityd)")
        ->type_name("DIR");
    verb->add_option("-n,--count", options->count, "rows of the table, at most 1000")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    add_picture(*verb, options->svg, "also draw throughput over time into this file");
}

} // namespace affinityctl
