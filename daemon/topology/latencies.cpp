// SPDX-License-Identifier: Apache-2.0
#include "topology/latencies.hpp"

#include "base/escape.hpp"
#include "base/text.hpp"
#include "topology/topology.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

namespace affinityd::topology {

namespace {

MeasuredMachine::Place place_of(const Cpu& cpu) { return {cpu.package.value_or(-1), cpu.core.value_or(-1)}; }

/// The cell of two different places in a lower triangle.
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

namespace {

/// How much farther the next CPUs have to be than those of the group: more than what the stops of one mesh or
/// ring differ by, less than any step from one cache, die or socket to the next that was ever measured.
constexpr double clear = 1.15;
constexpr double most_unclear = 0.05;  ///< part of the CPUs in groups that need not be clearly nearer
constexpr double least_grouped = 0.25; ///< part of the CPUs that have mates, at least

using Members = std::vector<std::size_t>; ///< places in Latencies::cpus(), ascending
using Partition = std::vector<Members>;   ///< by first member; every place is in one

std::optional<double> median_of(std::vector<double>& values) {
    if (values.empty()) return std::nullopt;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    if (values.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::optional<double> median_to(const Latencies& latencies, std::size_t place, const Members& members,
                                std::vector<double>& room) {
    room.clear();
    for (const auto other : members)
        if (const auto ns = latencies.at(place, other)) room.push_back(*ns);
    return median_of(room);
}

/// Two clusters becoming one, each known by one of its members (a place in Latencies::cpus()).
struct Merge {
    double ns = 0; ///< mean of what was measured between them; infinity: nothing was
    std::size_t a = 0, b = 0;
};

/// Clusters while they are joined; a cluster has the place of one of its members.
class Clusters {
  public:
    explicit Clusters(const Latencies& latencies)
        : size_(latencies.cpus().size()), sums_(size_ * size_), counts_(size_ * size_), alive_(size_, true) {
        for (std::size_t a = 0; a < size_; ++a)
            for (std::size_t b = 0; b < size_; ++b)
                if (const auto ns = latencies.at(a, b)) {
                    sums_[a * size_ + b] = *ns;
                    counts_[a * size_ + b] = 1;
                }
    }

    [[nodiscard]] std::size_t first() const {
        return static_cast<std::size_t>(std::ranges::find(alive_, true) - alive_.begin());
    }
    [[nodiscard]] double between(std::size_t a, std::size_t b) const {
        const auto count = counts_[a * size_ + b];
        return count == 0 ? std::numeric_limits<double>::infinity() : sums_[a * size_ + b] / count;
    }
    /// If several are equally near: `preferred`, else the first. There must be another one.
    [[nodiscard]] std::size_t nearest(std::size_t a, std::optional<std::size_t> preferred) const {
        auto best = preferred;
        for (std::size_t b = 0; b < size_; ++b)
            if (alive_[b] && b != a && (!best || between(a, b) < between(a, *best))) best = b;
        return *best;
    }
    /// `b` becomes part of `a`.
    void join(std::size_t a, std::size_t b) {
        for (std::size_t c = 0; c < size_; ++c) {
            if (!alive_[c] || c == a || c == b) continue;
            sums_[c * size_ + a] = sums_[a * size_ + c] += sums_[b * size_ + c];
            counts_[c * size_ + a] = counts_[a * size_ + c] += counts_[b * size_ + c];
        }
        alive_[b] = false;
    }

  private:
    std::size_t size_;
    std::vector<double> sums_;
    std::vector<unsigned> counts_;
    std::vector<bool> alive_;
};

/// Average linkage of all CPUs, the nearest clusters first: one merge less than there are CPUs. Pairs that
/// were not measured count for nothing. By the chain of nearest neighbours, in time and memory of the order
/// of the matrix. Source: Muellner, "Modern hierarchical, agglomerative clustering algorithms", 2011, 3.2.
std::vector<Merge> link_by_average(const Latencies& latencies) {
    std::vector<Merge> merges;
    const auto size = latencies.cpus().size();
    Clusters clusters(latencies);
    std::vector<std::size_t> chain; // each the nearest of the one before; its last two are each other's
    while (merges.size() + 1 < size) {
        if (chain.empty()) chain.push_back(clusters.first());
        const auto last = chain.back();
        const auto before =
            chain.size() > 1 ? std::optional<std::size_t>(chain[chain.size() - 2]) : std::nullopt;
        const auto nearest = clusters.nearest(last, before);
        if (nearest != before) {
            chain.push_back(nearest);
            continue;
        }
        const auto [a, b] = std::minmax(last, nearest);
        merges.push_back({clusters.between(a, b), a, b});
        clusters.join(a, b);
        chain.resize(chain.size() - 2);
    }
    std::ranges::stable_sort(merges, {}, &Merge::ns);
    return merges;
}

/// The groups after the first merges.
Partition partition_after(const std::vector<Merge>& merges, std::size_t count, std::size_t size) {
    std::vector<std::size_t> parent(size);
    std::iota(parent.begin(), parent.end(), 0);
    const auto root_of = [&parent](std::size_t place) {
        while (parent[place] != place)
            place = parent[place] = parent[parent[place]];
        return place;
    };
    for (std::size_t i = 0; i < count; ++i) {
        const auto [low, high] = std::minmax({root_of(merges[i].a), root_of(merges[i].b)});
        parent[high] = low; // so that the root of a group is its first member
    }
    std::vector<Members> groups(size);
    for (std::size_t place = 0; place < size; ++place)
        groups[root_of(place)].push_back(place);
    std::erase_if(groups, [](const Members& group) { return group.empty(); });
    return groups;
}

bool has_mates(const Members& group) { return group.size() > 1; }

/// CPU by CPU, because a few noisy pairs must neither make groups nor break them.
bool is_clear(const Latencies& latencies, const Partition& partition) {
    std::size_t grouped = 0, unclear = 0;
    std::vector<double> room;
    for (const auto& group : partition) {
        if (!has_mates(group)) continue;
        for (const auto place : group) {
            const auto within = median_to(latencies, place, group, room);
            if (!within) continue;
            ++grouped;
            unclear += std::ranges::any_of(partition, [&](const Members& other) {
                if (&other == &group) return false;
                const auto outside = median_to(latencies, place, other, room);
                return outside && *outside < clear * *within;
            });
        }
    }
    return static_cast<double>(grouped) >= least_grouped * static_cast<double>(latencies.cpus().size()) &&
           static_cast<double>(unclear) <= most_unclear * static_cast<double>(grouped);
}

/// Fine to coarse: where the merges leap, and what stands then is clear. With a single group that has mates,
/// all others are odd ones, and the machine is uniform but for them.
std::vector<Partition> clear_partitions(const Latencies& latencies) {
    const auto merges = link_by_average(latencies);
    std::vector<Partition> found;
    for (std::size_t count = 1; count < merges.size(); ++count) {
        if (!(merges[count].ns >= clear * merges[count - 1].ns)) continue;
        auto partition = partition_after(merges, count, latencies.cpus().size());
        if (std::ranges::count_if(partition, has_mates) > 1 && is_clear(latencies, partition))
            found.push_back(std::move(partition));
    }
    return found;
}

std::vector<std::size_t> groups_by_place(const Partition& partition, std::size_t size) {
    std::vector<std::size_t> group_of(size);
    for (std::size_t group = 0; group < partition.size(); ++group)
        for (const auto place : partition[group])
            group_of[place] = group;
    return group_of;
}

/// CPUs whose group in `coarse` holds several groups with mates of `fine`.
std::size_t joined(const Partition& fine, const Partition& coarse, std::size_t size) {
    const auto group_of = groups_by_place(coarse, size);
    std::vector<std::size_t> parts(coarse.size());
    for (const auto& group : fine)
        if (has_mates(group)) ++parts[group_of[group.front()]];
    std::size_t count = 0;
    for (std::size_t group = 0; group < coarse.size(); ++group)
        if (parts[group] > 1) count += coarse[group].size();
    return count;
}

/// Without those that only lack a few CPUs of the next coarser one, and those that join groups on a part of
/// the machine only.
std::vector<Partition> distinct(std::vector<Partition> found, std::size_t size) {
    std::vector<Partition> levels;
    for (auto& partition : found) {
        const auto count = levels.empty() ? size : joined(levels.back(), partition, size);
        if (count == 0)
            levels.back() = std::move(partition);
        else if (2 * count > size)
            levels.push_back(std::move(partition));
    }
    return levels;
}

double typical_ns(const Latencies& latencies, const Partition& partition, const Partition* finer) {
    const auto size = latencies.cpus().size();
    const auto group_of = groups_by_place(partition, size);
    const auto finer_of = finer == nullptr ? std::vector<std::size_t>() : groups_by_place(*finer, size);
    std::vector<double> values;
    for (std::size_t a = 0; a < size; ++a)
        for (std::size_t b = 0; b < a; ++b) {
            if (group_of[a] != group_of[b] || (finer != nullptr && finer_of[a] == finer_of[b])) continue;
            if (const auto ns = latencies.at(a, b)) values.push_back(*ns);
        }
    return median_of(values).value_or(0);
}

} // namespace

std::vector<LatencyLevel> latency_levels(const Latencies& latencies) {
    const auto& cpus = latencies.cpus();
    const auto partitions = distinct(clear_partitions(latencies), cpus.size());
    std::vector<LatencyLevel> levels;
    for (std::size_t i = 0; i < partitions.size(); ++i) {
        LatencyLevel level{typical_ns(latencies, partitions[i], i == 0 ? nullptr : &partitions[i - 1]), {}};
        for (const auto& group : partitions[i]) {
            CpuSet set;
            for (const auto place : group)
                set.insert(cpus[place]);
            level.groups.push_back(std::move(set));
        }
        levels.push_back(std::move(level));
    }
    return levels;
}

std::optional<LatencyLevel> measured_level(const Latencies& latencies, const Topology& topology) {
    const auto has_cores = [&](const CpuSet& group) {
        return !topology.core_of(group.first()).contains(group);
    };
    for (auto& level : latency_levels(latencies))
        if (std::ranges::any_of(level.groups, has_cores)) return std::move(level);
    const auto& cpus = latencies.cpus();
    Members all(cpus.size());
    std::iota(all.begin(), all.end(), 0);
    LatencyLevel whole{typical_ns(latencies, {all}, nullptr), {{}}};
    for (const unsigned cpu : cpus)
        whole.groups.front().insert(cpu);
    return whole.ns > 0 ? std::optional(std::move(whole)) : std::nullopt;
}

} // namespace affinityd::topology
