// SPDX-License-Identifier: Apache-2.0
// affinityctl history: what was measured, over time.
#include "accounting/measurements.hpp"
#include "affinityctl/present/output.hpp"
#include "affinityctl/present/svg.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/history_points.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"
#include "measure/statistics.hpp"
#include "status/json.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

/// Which part of the daemon's GetHistory is shown.
struct HistoryRequest {
    std::string path;       ///< of the sparklines; "": all
    std::size_t count = 20; ///< rows of the table, the latest
    bool unicode = false;   ///< the terminal shows UTF-8
};

using nlohmann::json;

constexpr std::size_t most_columns = 60; ///< of a sparkline

std::string cost(const json& record) {
    const double gigabytes = number_of(record, "bytes") / 1e9;
    return gigabytes > 0 ? fmt::format("{:.3f}", number_of(record, "cpu_seconds") / gigabytes) : "-";
}

std::string record_table(const json& records, std::size_t count, bool color) {
    Table table({"TIME", "KIND", "OUTCOME", "PATH", "MODEL", "GBIT/S", "CPU S/GB", "POLICIES", "REASON"});
    const std::size_t from = records.size() > count ? records.size() - count : 0;
    for (std::size_t i = from; i < records.size(); ++i) {
        const auto& record = records[i];
        const bool done = record.value("outcome", "") == "done" && number_of(record, "bytes") > 0;
        table.add({local_time(static_cast<long long>(number_of(record, "time"))), text_of(record, "kind"),
                   text_of(record, "outcome"), text_of(record, "path"), text_of(record, "model"),
                   done ? fmt::format("{:.3f}", number_of(record, "bits_per_second") / 1e9) : "-",
                   done ? cost(record) : "-", text_of(record, "policies"), text_of(record, "reason")});
    }
    return table.to_string(color);
}

/// One character for each point: the rate from the lowest to the highest in eight steps, 'x' for a run that
/// failed or was skipped. Without `unicode` the steps are digits.
std::string sparkline(const std::vector<HistoryPoint>& points, bool unicode) {
    constexpr std::array steps{"\u2581", "\u2582", "\u2583", "\u2584",
                               "\u2585", "\u2586", "\u2587", "\u2588"};
    const auto range = rates_of(points);
    std::string text;
    for (const auto& point : points) {
        if (!point.done) {
            text += 'x';
            continue;
        }
        const double part =
            range.high > range.low ? (point.rate - range.low) / (range.high - range.low) : 0.5;
        const auto step =
            std::min<std::size_t>(steps.size() - 1, static_cast<std::size_t>(part * steps.size()));
        text += unicode ? std::string(steps[step]) : std::string(1, static_cast<char>('1' + step));
    }
    return text;
}

std::string trend_text(const json& trend, const json& records, bool unicode) {
    const std::string path = text_of(trend, "path");
    auto points = points_of(records, path);
    if (points.size() > most_columns) points.erase(points.begin(), points.end() - most_columns);
    const auto text = fmt::format("\n{}: {}\n", printable(path), sparkline(points, unicode));
    const std::string direction = text_of(trend, "direction");
    if (direction == "unknown")
        return text + "  too few runs to say whether the last one is as it should be\n";
    const char* verdict = direction == "down" ? "REGRESSION: below what earlier runs predict"
                          : direction == "up" ? "above what earlier runs predict"
                                              : "as expected";
    return text + fmt::format("  last run {} % against the median of {:.3f} Gbit/s; {} ({:.3f} to {:.3f})\n",
                              affinityd::measure::signed_percent(number_of(trend, "change"), 1),
                              number_of(trend, "median") / 1e9, verdict, number_of(trend, "low") / 1e9,
                              number_of(trend, "high") / 1e9);
}

std::string history_text(const json& answer, const HistoryRequest& request, bool color) {
    const auto& records = answer.at("records");
    std::string text;
    if (!answer.value("kept", true))
        text += "the daemon keeps no history: only what it measured since its start\n";
    if (const auto fault = answer.value("fault", ""); !fault.empty())
        text += fmt::format("the history cannot be read: {}\n", printable(fault));
    if (records.empty())
        return text + "nothing has been measured yet (how local reads are is kept once an hour: affinityctl "
                      "status says how it is now)\n";
    text += record_table(records, request.count, color);
    for (const auto& trend : answer.at("trends"))
        if (request.path.empty() || text_of(trend, "path") == request.path)
            text += trend_text(trend, records, request.unicode);
    return text;
}

constexpr double left = 70, top = 50, wide = 800, high = 260;

/// The vertical place of a rate.
struct Scale {
    double most = 1;
    [[nodiscard]] double y(double rate) const { return top + high - std::max(0.0, rate) / most * high; }
};

void draw_axes(Svg& svg, const Scale& scale) {
    svg.line(left, top, left, top + high, "black");
    svg.line(left, top + high, left + wide, top + high, "black");
    for (int i = 0; i <= 4; ++i) {
        const double rate = scale.most / 4 * i;
        svg.text(left - 6, scale.y(rate) + 4, fmt::format("{:.2f}", rate / 1e9), 11, Svg::Anchor::end);
        if (i > 0) svg.line(left, scale.y(rate), left + wide, scale.y(rate), "#dddddd");
    }
}

void draw_trend(Svg& svg, const Scale& scale, const nlohmann::json& trend) {
    if (trend.value("direction", "unknown") == "unknown") return;
    const double above = scale.y(trend.value("high", 0.0)), below = scale.y(trend.value("low", 0.0));
    const double median = scale.y(trend.value("median", 0.0));
    svg.rect(left, above, wide, below - above, "#dbe9f6");
    svg.line(left, median, left + wide, median, "#0072b2");
    svg.text(left + wide + 6, median + 4, "median", 11);
}

void draw_points(Svg& svg, const Scale& scale, const std::vector<HistoryPoint>& points) {
    const double first = static_cast<double>(points.front().time);
    const double span = std::max(1.0, static_cast<double>(points.back().time) - first);
    for (const auto& point : points) {
        // After the clock was set back a run may seem older than the first one.
        const double x = left + std::clamp((static_cast<double>(point.time) - first) / span, 0.0, 1.0) * wide;
        if (point.done)
            svg.circle(x, scale.y(point.rate), 3, "#0072b2");
        else
            svg.text(x, top + high - 3, "x", 12, Svg::Anchor::middle);
    }
    svg.text(left, top + high + 20, local_time(points.front().time), 11);
    svg.text(left + wide, top + high + 20, local_time(points.back().time), 11, Svg::Anchor::end);
}

/// Rate over time, from zero, with the median and the expected interval of `trend` (an object of the daemon's
/// answer).
std::string history_svg(const std::vector<HistoryPoint>& points, const std::string& path,
                        const nlohmann::json& trend) {
    Svg svg(left + wide + 110, top + high + 60, "Throughput over time");
    const auto of_path = path.empty() ? std::string() : " over " + path; // a failed run may have none
    if (points.empty()) {
        svg.text(left, 28, "Throughput" + of_path + ": none is among these measurements", 16);
        return svg.finish();
    }
    svg.text(left, 28, fmt::format("Throughput{}, Gbit/s", of_path), 16);
    const Scale scale{std::max({rates_of(points).high, trend.value("high", 0.0), 1.0}) * 1.05};
    draw_axes(svg, scale);
    draw_trend(svg, scale, trend);
    draw_points(svg, scale, points);
    svg.text(left, top + high + 42,
             "Shaded: the range that earlier runs predict for the last one. x: failed or skipped.", 11);
    return svg.finish();
}

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
