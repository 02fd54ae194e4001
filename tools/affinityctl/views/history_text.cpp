// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/history_text.hpp"

#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"
#include "measure/percent.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace affinityctl {

using nlohmann::json;

namespace {

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

} // namespace

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

} // namespace affinityctl
