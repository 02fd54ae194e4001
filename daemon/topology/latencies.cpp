// SPDX-License-Identifier: Apache-2.0
#include "topology/latencies.hpp"

#include "base/escape.hpp"
#include "base/text.hpp"
#include "topology/topology.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace affinityd::topology {

namespace {

MeasuredMachine::Place place_of(const Cpu& cpu) { return {cpu.package.value_or(-1), cpu.core.value_or(-1)}; }

/// Of two different places in a lower triangle.
std::size_t cell_of(std::size_t a, std::size_t b) {
    const auto [low, high] = std::minmax(a, b);
    return high * (high - 1) / 2 + low;
}

std::optional<std::size_t> index_of(const std::vector<unsigned>& cpus, unsigned cpu) {
    const auto found = std::ranges::lower_bound(cpus, cpu);
    if (found == cpus.end() || *found != cpu) return std::nullopt;
    return static_cast<std::size_t>(found - cpus.begin());
}

} // namespace

Latencies::Latencies(const CpuSet& cpus, MeasuredMachine machine)
    : cpus_(cpus.to_vector()), machine_(std::move(machine)) {
    cpus_.resize(std::min(cpus_.size(), most_cpus));
    ns_.resize(cpus_.empty() ? 0 : cpus_.size() * (cpus_.size() - 1) / 2);
}

std::optional<double> Latencies::at(std::size_t a, std::size_t b) const {
    if (a == b) return std::nullopt;
    const float value = ns_[cell_of(a, b)];
    return value > 0 ? std::optional<double>(value) : std::nullopt;
}

std::optional<double> Latencies::ns(unsigned a, unsigned b) const {
    const auto first = index_of(cpus_, a), second = index_of(cpus_, b);
    return first && second ? at(*first, *second) : std::nullopt;
}

void Latencies::set(unsigned a, unsigned b, double ns) {
    const auto first = index_of(cpus_, a), second = index_of(cpus_, b);
    if (first && second && a != b && ns > 0 && ns <= most_ns)
        ns_[cell_of(*first, *second)] = static_cast<float>(ns);
}

std::size_t Latencies::measured() const {
    return static_cast<std::size_t>(std::ranges::count_if(ns_, [](float ns) { return ns > 0; }));
}

bool Latencies::is_of(const Topology& topology, std::string_view model) const {
    if (machine_.places.empty() || machine_.places.size() != cpus_.size() || machine_.model != model)
        return false;
    for (std::size_t i = 0; i < cpus_.size(); ++i)
        if (const auto* cpu = topology.find(cpus_[i]); cpu != nullptr && place_of(*cpu) != machine_.places[i])
            return false;
    return true;
}

MeasuredMachine describe(const Topology& topology, const CpuSet& cpus, std::string model) {
    MeasuredMachine machine{std::move(model), {}};
    for (const unsigned number : cpus) {
        const auto* cpu = topology.find(number);
        machine.places.push_back(cpu == nullptr ? MeasuredMachine::Place{} : place_of(*cpu));
    }
    return machine;
}

namespace {

constexpr std::size_t most_quoted = 40;

std::string cell_name(std::size_t row, std::size_t column) {
    return "line " + std::to_string(row + 1) + ", column " + std::to_string(column + 1);
}

std::string quoted(std::string_view cell) {
    return "'" + escaped(cell.substr(0, most_quoted)) + (cell.size() > most_quoted ? "...'" : "'");
}

/// No value: the cell is empty.
Result<std::optional<double>> read_cell(std::string_view cell, std::size_t row, std::size_t column) {
    cell = trim_text(cell);
    if (cell.empty()) return std::nullopt;
    double ns = 0;
    const auto [end, status] = std::from_chars(cell.data(), cell.data() + cell.size(), ns);
    if (status != std::errc{} || end != cell.data() + cell.size() || !std::isfinite(ns))
        return fail("expected nanoseconds, found " + quoted(cell), cell_name(row, column));
    if (row == column) {
        if (ns != 0)
            return fail("expected nothing on the diagonal, found " + quoted(cell), cell_name(row, column));
        return std::nullopt;
    }
    if (ns <= 0 || ns > Latencies::most_ns)
        return fail("expected nanoseconds above 0 and up to one second, found " + quoted(cell),
                    cell_name(row, column));
    return ns;
}

/// Without a byte order mark and the empty lines at the end.
std::vector<std::string_view> lines_of(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    auto lines = split(text, '\n');
    for (auto& line : lines)
        if (line.ends_with('\r')) line.remove_suffix(1);
    while (!lines.empty() && lines.back().empty())
        lines.pop_back();
    return lines;
}

Result<void> read_row(std::string_view line, std::size_t row, Latencies& latencies) {
    const auto cells = split(line, ',');
    const auto count = latencies.cpus().size();
    if (cells.size() != count)
        return fail("expected " + std::to_string(count) + " cells as in the first line, found " +
                        std::to_string(cells.size()),
                    "line " + std::to_string(row + 1));
    for (std::size_t column = 0; column < count; ++column) {
        const auto ns = read_cell(cells[column], row, column);
        if (!ns) return std::unexpected(ns.error());
        if (!*ns) continue;
        const auto other = column < row ? latencies.at(row, column) : std::nullopt; // given the other way
        latencies.set(static_cast<unsigned>(row), static_cast<unsigned>(column),
                      other ? (**ns + *other) / 2 : **ns);
    }
    return {};
}

} // namespace

Result<Latencies> latencies_from_csv(std::string_view text) {
    if (text.size() > most_csv_bytes) return fail("a table of latencies is not that long");
    const auto lines = lines_of(text);
    if (lines.empty()) return fail("expected a table of latencies, found nothing");
    const auto count = static_cast<std::size_t>(std::ranges::count(lines.front(), ',')) + 1;
    if (count < 2) return fail("expected cells with commas between them", "line 1");
    if (count > Latencies::most_cpus)
        return fail("expected at most " + std::to_string(Latencies::most_cpus) + " CPUs, found " +
                        std::to_string(count),
                    "line 1");
    Latencies latencies(CpuSet::range(0, static_cast<unsigned>(count) - 1));
    for (std::size_t row = 0; row < std::min(lines.size(), count); ++row)
        if (auto done = read_row(lines[row], row, latencies); !done) return std::unexpected(done.error());
    if (lines.size() != count)
        return fail("expected as many rows as columns, " + std::to_string(count) + ", found " +
                        std::to_string(lines.size()),
                    "line " + std::to_string(std::min(lines.size(), count + 1)));
    if (latencies.measured() == 0) return fail("no pair of CPUs has a value");
    return latencies;
}

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
