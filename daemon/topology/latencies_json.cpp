// SPDX-License-Identifier: Apache-2.0
#include "topology/latencies.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace affinityd::topology {

namespace {

using nlohmann::json;

/// Four digits are more than a measurement has; the text stays short.
double rounded_ns(double ns) {
    const double unit = std::pow(10.0, std::floor(std::log10(ns)) - 3);
    return unit < 1 ? std::round(ns / unit) / std::round(1 / unit) : std::round(ns);
}

Result<std::vector<MeasuredMachine::Place>> places_of(const json& document, std::size_t count) {
    std::vector<MeasuredMachine::Place> places;
    const auto found = document.find("places");
    if (found == document.end()) return places;
    if (!found->is_array() || found->size() != count) return fail("expected a place for each CPU", "places");
    for (const auto& place : *found) {
        if (!place.is_array() || place.size() != 2 || !place[0].is_number_integer() ||
            !place[1].is_number_integer())
            return fail("expected [package, core]", "places");
        places.push_back({place[0].get<int>(), place[1].get<int>()});
    }
    return places;
}

Result<void> read_rows(const json& document, Latencies& latencies) {
    const auto& cpus = latencies.cpus();
    const auto rows = document.find("ns");
    if (rows == document.end() || !rows->is_array() || rows->size() != cpus.size())
        return fail("expected a row for each CPU", "ns");
    for (std::size_t row = 0; row < cpus.size(); ++row) {
        const auto& cells = (*rows)[row];
        if (!cells.is_array() || cells.size() != row)
            return fail("expected as many cells as there are CPUs before this one",
                        "row " + std::to_string(row));
        for (std::size_t column = 0; column < row; ++column) {
            if (cells[column].is_null()) continue;
            const double ns = cells[column].is_number() ? cells[column].get<double>() : 0;
            if (!(ns > 0 && ns <= Latencies::most_ns))
                return fail("expected nanoseconds above 0 and up to one second, or null",
                            "row " + std::to_string(row) + ", column " + std::to_string(column));
            latencies.set(cpus[row], cpus[column], ns);
        }
    }
    return {};
}

} // namespace

Result<Latencies> latencies_from_json(std::string_view text) {
    const auto document = json::parse(text, nullptr, false);
    if (!document.is_object()) return fail("expected an object of latencies");
    const auto list = document.find("cpus");
    if (list == document.end() || !list->is_string()) return fail("expected a CPU list", "cpus");
    const auto cpus = CpuSet::parse_list(list->get<std::string>());
    if (!cpus) return std::unexpected(cpus.error());
    if (cpus->count() < 2 || cpus->count() > Latencies::most_cpus)
        return fail("expected 2 to " + std::to_string(Latencies::most_cpus) + " CPUs", "cpus");
    auto places = places_of(document, cpus->count());
    if (!places) return std::unexpected(places.error());
    const auto model = document.find("model");
    MeasuredMachine machine{model != document.end() && model->is_string() ? model->get<std::string>() : "",
                            std::move(*places)};
    Latencies latencies(*cpus, std::move(machine));
    if (auto done = read_rows(document, latencies); !done) return std::unexpected(done.error());
    if (latencies.measured() == 0) return fail("no pair of CPUs has a value", "ns");
    return latencies;
}

std::string to_json(const Latencies& latencies) {
    const auto& cpus = latencies.cpus();
    CpuSet set;
    for (const unsigned cpu : cpus)
        set.insert(cpu);
    json document{{"cpus", set.to_list()}, {"ns", json::array()}};
    if (!latencies.machine().model.empty()) document["model"] = latencies.machine().model;
    for (const auto& place : latencies.machine().places)
        document["places"].push_back({place.package, place.core});
    for (std::size_t row = 0; row < cpus.size(); ++row) {
        auto cells = json::array();
        for (std::size_t column = 0; column < row; ++column) {
            const auto ns = latencies.at(row, column);
            cells.push_back(ns ? json(rounded_ns(*ns)) : json());
        }
        document["ns"].push_back(std::move(cells));
    }
    return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace affinityd::topology
