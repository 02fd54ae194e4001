// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/models/load_tables.hpp"

#include "affinityctl/views/table.hpp"

#include <fmt/format.h>

namespace affinityctl {

using namespace affinityd::ttcp;
namespace measure = affinityd::measure;

namespace {

using Row = std::vector<std::string>;

/// `cells` gives the cells of a model; a curve has its size before them, in the first row of each.
template <class Cells>
std::string table_of(const WorkView& view, const std::vector<std::string>& labels, const Page& page,
                     Row heading, Cells cells) {
    heading.insert(heading.begin(), "MODEL");
    if (view.is_curve()) heading.insert(heading.begin(), "SIZE");
    Table table(heading);
    for (const auto& point : view.points)
        for (std::size_t i = 0; i < point.models.size(); ++i) {
            Row row = cells(point.models[i], i == 0);
            row.insert(row.begin(), labels[i]);
            if (view.is_curve()) row.insert(row.begin(), i == 0 ? size_text(point.point) : "");
            table.add(std::move(row));
        }
    return table.folded(page, view.is_curve() ? 2 : 1);
}

std::string change_text(const measure::Comparison& change, bool is_first) {
    return is_first ? "-" : describe(change);
}

std::string rate_cell(const Rate& rate) {
    if (rate.interval) return interval_text(rate.interval, 1, 0);
    return rate.mean ? fmt::format("{:.0f}", *rate.mean) : "-";
}

Row exchange_row(const ModelSummary& model, bool is_first) {
    const auto& exchanges = *model.exchanges;
    return {interval_text(exchanges.per_second, 1, 0), change_text(model.gain, is_first),
            interval_text(exchanges.p50, 1e-6, 1),     change_text(exchanges.p50_change, is_first),
            interval_text(exchanges.p99, 1e-6, 1),     change_text(exchanges.p99_change, is_first)};
}

std::string cost_text(const std::optional<measure::Interval>& cost, bool cycles) {
    return cycles ? interval_text(cost, 1, 2) : interval_text(cost, 1e-3, 1);
}

Row stream_row(const ModelSummary& model, bool is_first, bool cycles) {
    const auto& cost = model.cost;
    return {interval_text(model.bits_per_second, 1e9, 2), change_text(model.gain, is_first),
            cost_text(cycles ? cost.cycles_per_bit.total : cost.cpu_seconds.total, cycles),
            change_text(cost.change, is_first),
            model.busy_cpus ? fmt::format("{:.2f}", *model.busy_cpus) : "-"};
}

bool counts_misses(const WorkView& view) {
    for (const auto& point : view.points)
        for (const auto& model : point.models)
            if (model.per_bit.cache_misses.mean) return true;
    return false;
}

} // namespace

std::string gain_table(const WorkView& view, const std::vector<std::string>& labels, const Page& page) {
    const bool cycles = view.has_cycles();
    if (view.work != Work::answer)
        return table_of(
            view, labels, page, {"GBIT/S", "GAIN", cycles ? "GHZ/GBPS" : "CPU MS/GBIT", "COST", "BUSY CPUS"},
            [=](const ModelSummary& model, bool is_first) { return stream_row(model, is_first, cycles); });
    return table_of(view, labels, page, {"REQUESTS/S", "GAIN", "P50 US", "CHANGE", "P99 US", "CHANGE"},
                    [](const ModelSummary& model, bool is_first) {
                        return model.exchanges ? exchange_row(model, is_first) : Row(6, "-");
                    });
}

std::string cost_table(const WorkView& view, const std::vector<std::string>& labels, const Page& page) {
    const bool answers = view.work == Work::answer, misses = counts_misses(view);
    const bool cycles = !answers && view.has_cycles();
    Row heading{"PROCESSES", "SOFTIRQ", "INTERRUPTS"};
    if (answers) heading.insert(heading.begin(), {"CPU US/REQUEST", "COST"});
    if (misses) heading.insert(heading.end(), {"MISSES/BIT", "CHANGE"});
    return table_of(view, labels, page, heading, [&](const ModelSummary& model, bool is_first) {
        const auto& cost = cycles ? model.cost.cycles_per_bit : model.cost.cpu_seconds;
        Row row;
        if (answers) row = {interval_text(cost.total, 1e-6, 2), change_text(model.cost.change, is_first)};
        for (const auto* part : {&cost.processes, &cost.softirq, &cost.interrupts})
            row.push_back(answers ? interval_text(*part, 1e-6, 2) : cost_text(*part, cycles));
        if (!misses) return row;
        row.push_back(interval_text(model.per_bit.cache_misses.interval, 1, 5));
        row.push_back(change_text(model.per_bit.misses_change, is_first));
        return row;
    });
}

std::string rate_table(const WorkView& view, const std::vector<std::string>& labels, const Page& page) {
    const Row heading{"SWITCHES/S", "MIGRATIONS/S", "RETRANSMITS/S", "INTERRUPTS/S", "IPIS/S", "NET_RX/S"};
    return table_of(view, labels, page, heading, [](const ModelSummary& model, bool) {
        const auto& rates = model.per_second;
        return Row{rate_cell(rates.switches),   rate_cell(rates.migrations), rate_cell(rates.retransmits),
                   rate_cell(rates.interrupts), rate_cell(rates.ipis),       rate_cell(rates.net_rx)};
    });
}

} // namespace affinityctl
