// SPDX-License-Identifier: Apache-2.0
#include "experiments/latency/matrix.hpp"

#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace affinityd::experiments {

namespace {

using nlohmann::json;

/// To a hundredth of a nanosecond, and from 100 on to a tenth: more is noise, and the history is not endless.
double short_ns(double ns) { return ns < 100 ? std::round(ns * 100) / 100 : std::round(ns * 10) / 10; }

json triangle(const LatencyMatrix& matrix, const auto& figure) {
    const auto& cpus = matrix.latencies.cpus();
    std::map<unsigned, std::size_t> place;
    json rows = json::array();
    for (const unsigned cpu : cpus) {
        place[cpu] = rows.size();
        rows.push_back(json::array());
        for (std::size_t i = 0; i + 1 < rows.size(); ++i)
            rows.back().push_back(nullptr);
    }
    for (const auto& figures : matrix.pairs)
        if (const std::optional<double> ns = std::invoke(figure, figures))
            rows[place[figures.pair.b]][place[figures.pair.a]] = short_ns(*ns);
    return rows;
}

} // namespace

std::string to_json(const LatencyMatrix& matrix) {
    auto document = json::parse(topology::to_json(matrix.latencies));
    document["low"] = triangle(matrix, &PairFigures::low);
    document["high"] = triangle(matrix, &PairFigures::high);
    document["median"] = triangle(matrix, &PairFigures::median);
    document["means"] = name_of(matrix.how.means);
    document["samples"] = matrix.how.samples;
    document["round_trips"] = matrix.how.round_trips;
    document["taken_again"] = matrix.interrupted;
    document["is_whole"] = matrix.is_whole;
    return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace affinityd::experiments
