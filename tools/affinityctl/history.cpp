// SPDX-License-Identifier: Apache-2.0
// affinityctl history: what was measured, over time.
#include "history_chart.hpp"
#include "say.hpp"
#include "svg.hpp"
#include "table.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using nlohmann::json;

constexpr std::size_t most_columns = 60; ///< of a sparkline

struct Options {
    std::string kind;
    std::string path;
    std::string svg;
    std::size_t count = 20;
};

bool speaks_utf8() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        const char* value = std::getenv(name);
        if (value == nullptr || *value == '\0') continue;
        const std::string text = value;
        return text.find("UTF-8") != std::string::npos || text.find("utf8") != std::string::npos;
    }
    return false;
}

double number(const json& record, const char* key) {
    const auto found = record.find(key);
    return found != record.end() && found->is_number() ? found->get<double>() : 0;
}

std::vector<HistoryPoint> points_of(const json& records, const std::string& path) {
    std::vector<HistoryPoint> points;
    for (const auto& record : records) {
        if (record.value("kind", "") != "ttcp") continue;
        const bool done = record.value("outcome", "") == "done";
        // A run that did not begin knows no way: it counts for all.
        if (record.value("path", "") == path || (!done && record.value("path", "").empty()))
            points.push_back(
                {static_cast<long long>(number(record, "time")), done, number(record, "bits_per_second")});
    }
    return points;
}

std::string cost(const json& record) {
    const double gigabytes = number(record, "bytes") / 1e9;
    return gigabytes > 0 ? fmt::format("{:.3f}", number(record, "cpu_seconds") / gigabytes) : "-";
}

void show_table(const json& records, std::size_t count, bool color) {
    Table table({"TIME", "KIND", "OUTCOME", "PATH", "MODEL", "GBIT/S", "CPU S/GB", "POLICIES", "REASON"});
    const std::size_t from = records.size() > count ? records.size() - count : 0;
    for (std::size_t i = from; i < records.size(); ++i) {
        const auto& record = records[i];
        const bool done = record.value("outcome", "") == "done";
        table.add({local_time(static_cast<long long>(number(record, "time"))), text_of(record, "kind"),
                   text_of(record, "outcome"), text_of(record, "path"), text_of(record, "model"),
                   done ? fmt::format("{:.3f}", number(record, "bits_per_second") / 1e9) : "-",
                   done ? cost(record) : "-", text_of(record, "policies"), text_of(record, "reason")});
    }
    fmt::print("{}", table.to_string(color));
}

void show_trend(const json& trend, const json& records) {
    const std::string path = text_of(trend, "path");
    auto points = points_of(records, path);
    if (points.size() > most_columns) points.erase(points.begin(), points.end() - most_columns);
    fmt::print("\n{}: {}\n", printable(path), sparkline(points, speaks_utf8()));
    const std::string direction = text_of(trend, "direction");
    if (direction == "unknown") {
        fmt::print("  too few runs to say whether the last one is as it should be\n");
        return;
    }
    const char* verdict = direction == "down" ? "REGRESSION: below what the runs before let expect"
                          : direction == "up" ? "above what the runs before let expect"
                                              : "as expected";
    fmt::print("  last run {:+.1f} % against the median of {:.3f} Gbit/s; {} ({:.3f} to {:.3f})\n",
               100 * number(trend, "change"), number(trend, "median") / 1e9, verdict,
               number(trend, "low") / 1e9, number(trend, "high") / 1e9);
}

void show(const json& answer, const Options& options, bool color) {
    const auto& records = answer.at("records");
    if (!answer.value("kept", true))
        fmt::print("the daemon keeps no history: only what it measured since its start\n");
    if (const auto fault = answer.value("fault", ""); !fault.empty())
        fmt::print("the history cannot be read: {}\n", printable(fault));
    if (records.empty()) {
        fmt::print("nothing has been measured yet\n");
        return;
    }
    show_table(records, options.count, color);
    for (const auto& trend : answer.at("trends"))
        if (options.path.empty() || text_of(trend, "path") == options.path) show_trend(trend, records);
}

/// Draws the way that was asked for, else the one of the last run.
int draw(const json& answer, const Options& options) {
    const auto& records = answer.at("records");
    std::string path = options.path;
    for (auto record = records.rbegin(); path.empty() && record != records.rend(); ++record)
        if (record->value("kind", "") == "ttcp" && record->value("outcome", "") == "done")
            path = record->value("path", "");
    json trend = json::object();
    for (const auto& one : answer.at("trends"))
        if (one.value("path", "") == path) trend = one;
    return write_svg(options.svg, history_svg(points_of(records, path), path, trend));
}

int run(const Globals& globals, const Options& options) {
    int drawn = exit_ok;
    Globals quiet = globals;
    quiet.json = false; // the picture is drawn from the answer either way
    const int asked = ask_and_show(quiet, "GetHistory", {options.kind}, [&](const json& answer) {
        if (!options.svg.empty()) drawn = draw(answer, options);
        if (globals.json)
            fmt::print("{}\n", answer.dump());
        else
            show(answer, options, globals.color);
    });
    return asked != exit_ok ? asked : drawn;
}

} // namespace

void add_history(CLI::App& app, Globals& globals, int& status) {
    auto* verb = app.add_subcommand("history",
                                    "what was measured so far, and whether the last run is as it should be");
    const auto options = std::make_shared<Options>();
    verb->add_option("--kind", options->kind, "only these")->check(CLI::IsMember({"ttcp", "passive"}));
    verb->add_option("--path", options->path,
                     "the way that the sparkline and the picture are about: loopback or host:port; default: "
                     "all, the last");
    verb->add_option("-n,--count", options->count, "rows of the table")->capture_default_str();
    verb->add_option("--svg", options->svg, "also draw throughput over time into this file");
    verb->callback([&globals, &status, options] { status = run(globals, *options); });
}

} // namespace affinityctl
