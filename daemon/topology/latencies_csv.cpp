// SPDX-License-Identifier: Apache-2.0
#include "base/escape.hpp"
#include "base/text.hpp"
#include "topology/latencies.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace affinityd::topology {

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

} // namespace affinityd::topology
