// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/watch_rows.hpp"

#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/table.hpp"

#include <fmt/format.h>

namespace affinityctl {

using nlohmann::json;

namespace {

json to_json(const TaskRow& row) {
    return {{"pid", row.pid},
            {"tid", row.tid},
            {"comm", printable(row.comm)},
            {"policy", row.policy},
            {"state", row.state},
            {"cpu", row.cpu},
            {"mask", row.mask.to_list()},
            {"wanted", row.wanted.to_list()},
            {"astray", row.is_astray()},
            {"share", or_null(row.share)},
            {"migrations_per_second", or_null(row.migrations)}};
}

} // namespace

std::vector<std::string> watch_cells(const TaskRow& row) {
    return {std::to_string(row.pid),
            std::to_string(row.tid),
            printable(row.comm),
            printable(row.policy),
            std::to_string(row.cpu) + (row.is_astray() ? "!" : ""),
            row.mask.to_list(),
            row.share ? fmt::format("{:.1f}%", *row.share * 100) : "-",
            row.migrations ? fmt::format("{:.1f}", *row.migrations) : "-",
            row.state};
}

std::string watch_table(const std::vector<TaskRow>& rows, bool color) {
    Table table(watch_heading);
    for (const auto& row : rows)
        table.add(watch_cells(row));
    return table.to_string(color);
}

json watch_json(const std::vector<TaskRow>& rows) {
    json list = json::array();
    for (const auto& row : rows)
        list.push_back(to_json(row));
    return list;
}

} // namespace affinityctl
