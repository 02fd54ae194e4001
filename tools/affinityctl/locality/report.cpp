// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/locality/report.hpp"

#include "affinityctl/client/answers.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace locality = affinityd::locality;
using affinityd::counted;
using affinityd::grouped;
using nlohmann::json;

namespace {

constexpr std::uint64_t fewest_reads = 100;
constexpr double local_enough = 0.9;
constexpr std::uint64_t twentieth = 20; // what is less than 5 % does not count

/// How many of these numbers are 5 % of the sum or more.
template <class Numbers>
std::size_t weighty(const Numbers& numbers) {
    std::uint64_t sum = 0;
    for (const auto& [key, number] : numbers)
        sum += number;
    return static_cast<std::size_t>(std::ranges::count_if(
        numbers, [&](const auto& one) { return one.second > 0 && one.second * twentieth >= sum; }));
}

constexpr std::size_t most_workers = 10, most_arrivals = 12, most_sources_told = 2;

std::string percent(const json& worker, const char* kind, const char* level) {
    if (!worker.contains("reads") ||
        worker["reads"].get<std::uint64_t>() - worker["unknown"].get<std::uint64_t>() < fewest_samples)
        return "-";
    return fmt::format("{:.0f}%", worker[kind][level].get<double>() * 100);
}

std::string reads_of(const json& row) { return grouped(row["reads"].get<std::uint64_t>()); }

std::string told_sources(const json& place) {
    const auto& sources = place["sources"];
    const json told(sources.begin(), sources.begin() + static_cast<std::ptrdiff_t>(
                                                           std::min(sources.size(), most_sources_told)));
    return joined(told, "; ") + (sources.size() > most_sources_told
                                     ? fmt::format("; {} more", sources.size() - most_sources_told)
                                     : "");
}

// clang-format off
constexpr Field share_fields[] = {
    {"cpu", "", "number", "on the same CPU, 0 to 1"},
    {"core", "", "number", "on the same core"},
    {"llc", "", "number", "in the same last-level cache"},
    {"node", "", "number", "on the same NUMA node"},
};
constexpr Field worker_fields[] = {
    {"name", "PROCESS", "text*", "its name"},
    {"pid", "PID", "count*", "the process"},
    {"reads", "", "count", "its reads"},
    {"", "READS", "text", "", {}, reads_of},
    {"unknown", "", "count", "those whose packet's arrival is not known"},
    {"same", "", "object?", "the parts read where the packet arrived", share_fields},
    {"", "CPU", "text", "", {}, [](const json& worker) { return percent(worker, "same", "cpu"); }},
    {"", "CORE", "text", "", {}, [](const json& worker) { return percent(worker, "same", "core"); }},
    {"", "LLC", "text", "", {}, [](const json& worker) { return percent(worker, "same", "llc"); }},
    {"", "NODE", "text", "", {}, [](const json& worker) { return percent(worker, "same", "node"); }},
    {"chance", "", "object?", "the parts if packets came to it wherever they arrive", share_fields},
    {"", "CHANCE", "text", "", {}, [](const json& worker) { return percent(worker, "chance", "cpu") + "/" + percent(worker, "chance", "core"); }},
};
constexpr Field place_fields[] = {
    {"cpu", "", "count", "a CPU where packets arrive"},
    {"", "ARRIVES", "text", "", {}, [](const json& place) { return "CPU " + text_of(place, "cpu"); }},
    {"reads", "", "count", "reads of packets that arrived there"},
    {"part", "PART", "text*", "in the table alone: their part of all"},
    {"sources", "", "text[]", "the queues or other causes that bring them there"},
    {"", "BROUGHT THERE BY", "prose", "", {}, told_sources},
    {"interrupt", "", "flag", "an interrupt of a queue explains it"},
};
constexpr Field read_fields[] = {
    {"pid", "", "count", "the process"},
    {"network_namespace", "", "count", "the socket's network namespace, 0 if not known"},
    {"ifindex", "", "count", "the interface there, 0 if not known"},
    {"napi_id", "", "count", "the NAPI instance, 0 if not known"},
    {"arrival", "", "count?", "the CPU of arrival"},
    {"cpu", "", "count", "the CPU that read"},
    {"protocol", "", "count", "6: TCP, 17: UDP"},
    {"reads", "", "count", "how many"},
};
constexpr Field report_fields[] = {
    {"subject", "", "text", "whose reads are meant"},
    {"seconds", "", "number", "the time of the watch"},
    {"all_protocols", "", "flag", "not only TCP"},
    {"lost", "", "count", "reads that found no room"},
    {"of_unknown", "", "count", "reads by processes that ended at once"},
    {"in_softirq", "", "count", "times that the kernel itself took data"},
    {"all", "", "object", "all processes together", worker_fields},
    {"processes", "", "object[]", "each, the busiest first", worker_fields},
    {"arrivals", "", "object[]", "where packets arrive, the busiest first", place_fields},
    {"listeners", "", "count", "listeners at one address and port"},
    {"advice", "", "text", "a word for the advice"},
    {"advice_for", "", "text?", "of all processes: those that it is for"},
    {"text", "", "text", "the advice"},
    {"remarks", "", "text[]", "facts that are missing, and why"},
    {"counts", "", "object[]", "the raw counts", read_fields},
};
// clang-format on

json shares_json(const locality::NearShares& shares, bool is_any) {
    return is_any ? record(share_fields, {shares.cpu, shares.core, shares.llc, shares.node}) : json();
}

json worker_json(const locality::WorkerFigures& worker, json name, json pid) {
    const bool is_any = worker.reads > worker.unknown;
    return record(worker_fields, {std::move(name), std::move(pid), worker.reads, worker.unknown,
                                  shares_json(worker.same, is_any), shares_json(worker.chance, is_any)});
}

std::vector<std::string> remarks_of(const LocalityReport& report) {
    const auto& seen = report.seen;
    auto remarks = seen.notes;
    if (report.figures.total.unknown > 0)
        remarks.push_back(
            fmt::format("The kernel does not say of {} where the packet arrived; they are in no percentage.",
                        counted(report.figures.total.unknown, "read")));
    if (seen.lost > 0)
        remarks.push_back(counted(seen.lost, "read") + " found no room in the table and are left out.");
    if (seen.of_unknown > 0)
        remarks.push_back(counted(seen.of_unknown, "read") +
                          " by processes that ended at once are left out: whose they were is not known.");
    if (seen.in_softirq > 0)
        remarks.push_back(
            fmt::format("{} times the kernel itself took data off a connection, where no process reads "
                        "(TLS in the kernel and the like); these are left out.",
                        seen.in_softirq));
    return remarks;
}

json value_of(const LocalityReport& report) {
    const auto advice = advice_for(report.facts);
    const json missing(json::value_t::discarded);
    auto processes = json::array(), arrivals = json::array(), counts = json::array();
    for (const auto& worker : report.figures.workers)
        processes.push_back(worker_json(worker, worker.name, worker.pid));
    for (const auto& place : report.arrivals)
        arrivals.push_back(
            record(place_fields, {place.cpu, place.reads, missing, place.sources, place.is_interrupt}));
    for (const auto& count : report.seen.counts)
        counts.push_back(
            record(read_fields, {count.pid, count.network_space, count.device, count.napi,
                                 or_null(count.arrival), count.reader, count.protocol, count.reads}));
    return record(report_fields,
                  {report.subject, report.seen.seconds, report.seen.has_other_protocols, report.seen.lost,
                   report.seen.of_unknown, report.seen.in_softirq,
                   worker_json(report.figures.total, missing, missing), std::move(processes),
                   std::move(arrivals), report.facts.listeners, advice.word, or_null(report.busiest),
                   (report.busiest.empty() ? "" : report.busiest + ", the busiest: ") + advice.sentence,
                   remarks_of(report), std::move(counts)});
}

void add_workers(const LocalityReport& report, const json& value, Document& into) {
    Document::Table table{worker_fields};
    std::uint64_t rest = 0;
    for (const auto& worker : value["processes"])
        if (table.rows.size() < most_workers)
            table.rows.push_back(worker);
        else
            rest += worker["reads"].get<std::uint64_t>();
    if (rest > 0)
        table.rows.push_back({{"name", fmt::format("{} more", value["processes"].size() - most_workers)},
                              {"reads", rest},
                              {"unknown", rest}});
    table.rows.push_back(worker_json(report.figures.total, "all", ""));
    into.add(std::move(table)).gap = true;
    into.line("CPU, CORE, LLC, NODE: read on the one where the packet arrived; CHANCE: CPU and core, if "
              "packets came to a "
              "process wherever they arrive.");
}

void add_arrivals(const json& value, Document& into) {
    std::uint64_t all = 0;
    for (const auto& place : value["arrivals"])
        all += place["reads"].get<std::uint64_t>();
    Document::Table table{place_fields};
    for (json place : value["arrivals"]) {
        if (table.rows.size() == most_arrivals) break;
        place["part"] =
            all < fewest_samples
                ? "-"
                : fmt::format("{:.0f}%", place["reads"].get<double>() / static_cast<double>(all) * 100);
        table.rows.push_back(std::move(place));
    }
    const auto shown = table.rows.size();
    if (shown == 0) return;
    into.add(std::move(table)).gap = true;
    if (value["arrivals"].size() > shown)
        into.line(fmt::format("and {} more CPUs", value["arrivals"].size() - shown));
}

} // namespace

const Fields locality_answer = report_fields;

LocalityFacts facts_of(const locality::LocalityFigures& figures,
                       const std::vector<locality::ReadCount>& counts,
                       const std::function<bool(int pid)>& is_meant) {
    LocalityFacts facts{.reads = figures.total.reads - figures.total.unknown,
                        .unknown = figures.total.unknown,
                        .same_core = figures.total.same.core};
    std::map<unsigned, std::uint64_t> arrivals, readers;
    std::map<int, std::uint64_t> workers;
    for (const auto& [pair, reads] : figures.matrix) {
        arrivals[pair.first] += reads;
        readers[pair.second] += reads;
    }
    for (const auto& worker : figures.workers)
        workers[worker.pid] = worker.reads;
    for (const auto& count : counts)
        if (count.arrival && count.device == 1 && is_meant(count.pid)) facts.loopback += count.reads;
    facts.arrival_cpus = weighty(arrivals);
    facts.reader_cpus = weighty(readers);
    facts.workers = weighty(workers);
    return facts;
}

Advice advice_for(const LocalityFacts& facts) {
    const auto reads = facts.reads + facts.unknown;
    const auto percent = fmt::format("{:.0f} %", facts.same_core * 100);
    if (reads < fewest_reads)
        return {"watch_longer",
                fmt::format("Only {} in this time: watch while there is traffic, for longer (--for), or UDP, "
                            "too (--udp).",
                            counted(reads, "read"))};
    if (facts.cpus == 1) return {"one_cpu", "Nothing to do: one CPU is online, and everything is local."};
    if (facts.unknown > facts.reads)
        return {
            "not_known",
            "The kernel does not say of most reads where the packet arrived (UDP sockets without a peer): "
            "they cannot be judged this way."};
    if (facts.loopback * 2 > facts.reads)
        return {"loopback",
                "Most packets come over loopback, where no interrupt is: bind the two programs to "
                "one cache group (spread: llc) instead of steering."};
    if (facts.same_core >= local_enough)
        return {"nothing", fmt::format("Nothing to do: {} are read on the core where they arrive.", percent)};
    if (facts.arrival_cpus <= 1 && facts.reader_cpus > 1)
        return {
            "more_queues",
            fmt::format("One CPU takes in what {} CPUs read: give the interface more queues (ethtool -L), "
                        "or where it has no more, spread the work by RPS.",
                        facts.reader_cpus)};
    if (facts.listeners >= 2 && facts.steered_by.empty())
        return {"steer_accept",
                fmt::format("The workers have listeners of their own ({} at one port), but only {} are read "
                            "on the core where they arrive: a policy with affinity: full and steer: accept "
                            "brings them together.",
                            facts.listeners, percent)};
    if (facts.listeners >= 2)
        return {"explain",
                fmt::format("Policy {} may already steer these listeners, but only {} are read on the core "
                            "where they arrive: connections that were opened before stay as they are, and "
                            "affinityctl explain PID tells which listeners are not steered, and why.",
                            facts.steered_by, percent)};
    if (facts.listeners == 1 && facts.workers > 1)
        return {
            "reuseport",
            fmt::format("{} processes share one listener: switch on reuseport in the server, then use "
                        "affinity: full with steer: accept (a process for each connection: steer: tasks).",
                        facts.workers)};
    if (facts.listeners == 1 && facts.reader_cpus > 1)
        return {"steer_flows", "The threads of one process share one listener: switch on reuseport in the "
                               "server if it can, else use affinity: full with steer: flows."};
    if (facts.reader_cpus <= 1 && facts.workers <= 1)
        return {"bind_near", "One CPU reads what arrives on others: a policy with affinity: full puts the "
                             "process and the interrupts together."};
    return {"steer_clients",
            fmt::format("Only {} are read on the core where they arrive, and no listener decides who gets a "
                        "connection: use affinity: full with steer: flows.",
                        percent)};
}

Document::Grid grid_of(const locality::ReadMatrix& matrix, const locality::Nearness& near,
                       locality::NearLevel level) {
    Document::Grid grid{
        .note = fmt::format("in % of the row, by {}{}", name_of(level),
                            level == locality::NearLevel::cpu ? "" : ", each named by its lowest CPU")};
    std::set<unsigned> groups;
    std::map<unsigned, double> arrivals;
    std::map<std::pair<unsigned, unsigned>, double> cells;
    for (const auto& [pair, reads] : matrix) {
        const auto row = near.group(level, pair.first), column = near.group(level, pair.second);
        groups.insert({row, column});
        arrivals[row] += static_cast<double>(reads);
        cells[{row, column}] += static_cast<double>(reads);
    }
    for (const auto row : groups) {
        grid.rows.push_back(std::to_string(row));
        auto& shares = grid.shares.emplace_back();
        for (const auto column : groups)
            shares.push_back(cells[{row, column}] / std::max(arrivals[row], 1.0));
    }
    grid.columns = grid.rows;
    return grid;
}

Document locality_document(const LocalityReport& report, const locality::Nearness& near) {
    Document document;
    document.by_columns = true;
    document.value = value_of(report);
    document.title = "Where packets arrive and where they are read";
    const auto reads = report.figures.total.reads;
    document.line(fmt::format("{:.1f} s: {} {}{} by {} ({})", report.seen.seconds, grouped(reads),
                              report.seen.has_other_protocols ? "" : "TCP ", reads == 1 ? "read" : "reads",
                              counted(report.figures.workers.size(), "process", "processes"),
                              report.subject));
    if (!report.figures.workers.empty()) add_workers(report, document.value, document);
    if (!report.figures.matrix.empty()) {
        Document::Map map{"Arrives (down), read (across)", "read on", {}};
        for (const auto level : locality::near_levels)
            map.grids.push_back(grid_of(report.figures.matrix, near, level));
        document.add(std::move(map)).gap = true;
        add_arrivals(document.value, document);
    }
    for (const auto& remark : document.value["remarks"])
        document.paragraph(remark.get<std::string>());
    document.paragraph(document.value["text"].get<std::string>());
    return document;
}

} // namespace affinityctl
