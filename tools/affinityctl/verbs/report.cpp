// SPDX-License-Identifier: Apache-2.0
// affinityctl report: the state of the machine as one HTML page, from the documents of other verbs.
#include "affinityctl/client/answers.hpp"
#include "affinityctl/client/occupancy.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::CpuSet;
using nlohmann::json;
using Ways = Document::Ways;

struct ReportOptions {
    std::string file;
    std::vector<std::string> policies;
};

constexpr std::size_t most_ways = 32; // of a policy

constexpr Field report_fields[] = {
    {"file", "", "text", "the page"},
    {"health", "", "text?", "ok, settling or attention; null of a recorded machine"},
    {"problems", "", "count", "problems"},
    {"policies", "", "count", "policies"},
};

std::string percent(double part, const char* of) { return fmt::format("{:.0f} % {}", 100 * part, of); }

/// Interrupts since boot that these CPUs took.
double taken_by(const json& vector, const CpuSet& cpus) {
    double taken = 0;
    const auto counts = member(vector, "counts");
    for (const auto& [name, number] : counts.items()) {
        unsigned cpu = 0;
        std::from_chars(name.data(), name.data() + name.size(), cpu);
        if (cpus.contains(cpu) && number.is_number()) taken += number.get<double>();
    }
    return taken;
}

/// The part of a policy's packets that is read on the core where they arrive.
std::string local_part(const json& policy) {
    const auto local = member(policy, "local");
    const auto core = member(member(local, "same"), "core");
    return core.is_number() && count(local, "samples") >= fewest_samples
               ? percent(core.get<double>(), "read on this core")
               : "local share not counted";
}

Ways::Stop nic_stop(const json& nic) {
    const auto node = member(nic, "node");
    return {"NIC", text(nic, "name") + (node.is_number() ? ", node " + node.dump() : "")};
}

/// From an interrupt of the policy to the tasks that it serves.
std::vector<Ways::Stop> way_of_vector(const json& nic, const json& vector, double of_nic,
                                      const json& policy) {
    const auto where = cpus(vector, text(vector, "effective").empty() ? "requested" : "effective");
    const auto all = static_cast<double>(count(vector, "count"));
    const auto queue = member(vector, "queue");
    auto place = where.empty() ? "not known" : where.to_list();
    if (const auto wanted = text(vector, "wanted"); !wanted.empty() && wanted != place)
        place += ", wanted " + wanted;
    return {nic_stop(nic),
            {"queue", queue.is_number() ? queue.dump() : "shared by all",
             of_nic > 0 ? percent(all / of_nic, "of its interrupts") : ""},
            {"interrupt", fmt::format("IRQ {} {}", text_of(vector, "irq"), text(vector, "label"))},
            {"CPU", std::move(place), all > 0 ? percent(taken_by(vector, where) / all, "taken here") : ""},
            {"worker", tasks_text(vector), local_part(policy)}};
}

/// From a queue without an interrupt of its own, by packet steering.
std::vector<Ways::Stop> way_of_queue(const json& nic, const json& queue, const json& policy) {
    const auto steering = text(queue, "steering");
    return {nic_stop(nic),
            {"queue", text(queue, "direction") + "-" + text_of(queue, "index")},
            {"CPU", steering.empty() ? "any" : steering, steering.empty() ? "not steered" : "steered by RPS"},
            {"worker", tasks_text(queue), local_part(policy)}};
}

/// The ways of a policy's packets; one of the whole policy where it places no queue.
Ways ways_of(const json& policy, const json& nics) {
    const auto name = text(policy, "name");
    Ways ways{.title = "policy " + name, .note = "affinity " + text_of(policy, "affinity"), .ways = {}};
    if (const auto local = local_sentence(member(policy, "local")); !local.empty()) ways.note += "; " + local;
    for (const auto& nic : nics) {
        double all = 0;
        for (const auto& vector : list(nic, "vectors"))
            all += static_cast<double>(count(vector, "count"));
        for (const auto& vector : list(nic, "vectors"))
            if (text(vector, "policy") == name) ways.ways.push_back(way_of_vector(nic, vector, all, policy));
        for (const auto& queue : list(nic, "queues"))
            if (text(queue, "policy") == name && text(queue, "direction") == "rx" &&
                list(nic, "vectors").empty())
                ways.ways.push_back(way_of_queue(nic, queue, policy));
    }
    if (ways.ways.empty()) {
        const auto names = joined(list(policy, "nics"), ", ");
        ways.note += "; it places no interrupt";
        ways.ways.push_back(
            {{"NIC", names.empty() ? "any" : names},
             {"CPU", cell(text(policy, "cpus")), "any queue"},
             {"worker", affinityd::counted(count(policy, "threads"), "thread"), local_part(policy)}});
    } else if (ways.ways.size() > most_ways) {
        ways.note += fmt::format("; {} more queues: affinityctl nics", ways.ways.size() - most_ways);
        ways.ways.resize(most_ways);
    }
    return ways;
}

/// A section with the blocks of another verb's document, except those of its other form.
void add_section(Document& page, const char* heading, Document part, Document::Where other) {
    page.heading(heading);
    std::ranges::move(part.complaints, std::back_inserter(page.complaints));
    for (auto& block : part.blocks)
        if (block.where != other) page.blocks.push_back({std::move(block.is)});
}

Outcome run_report(const ReportOptions& options, const Globals& globals) {
    need(check_picture(globals, options.file));
    const bool is_recorded = globals.is_recorded();
    auto state = need(is_recorded ? documents::plan(globals, options.policies) : documents::status(globals));
    const json status = state.value;
    const auto nics = need(documents::nics(globals, status)).value;
    auto occupancy = occupancy_of_status(status, is_recorded ? Masks::wanted : Masks::present);
    if (is_recorded) {
        occupancy.source = "after these changes";
        for (auto& tenant : occupancy.tenants)
            tenant.summary.clear();
    }
    auto machine = need(documents::topology(globals, std::move(occupancy)));
    Document page;
    page.value = record(report_fields, {options.file, or_null(text(status, "health")),
                                        list(status, "problems").size(), list(status, "policies").size()});
    page.code = state.code;
    page.picture = options.file;
    page.is_page = true;
    page.title = "affinityd on " + machine.title;
    const json seats = machine.value;
    add_section(page, is_recorded ? "Changes that a daemon would make" : "State", std::move(state),
                Document::Where::picture);
    add_section(page, "Places", std::move(machine), Document::Where::text);
    page.add(Document::Table{seat_fields, seats});
    page.heading("Ways of packets");
    page.line(
        "Beside the arrows: the queue's part of the interface's interrupts since boot; the part of the "
        "interrupt that its present CPUs took; the part of the policy's packets that is read on the core "
        "where they arrive.");
    for (const auto& policy : list(status, "policies"))
        page.add(ways_of(policy, nics));
    if (list(status, "policies").empty()) page.line(no_policies);
    if (!is_recorded)
        add_section(page, "Measurements", need(documents::history(globals)), Document::Where::picture);
    for (auto& block : page.blocks)
        block.where = Document::Where::picture;
    return page;
}

} // namespace

void add_report(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "report",
                  .summary = "all of it as one HTML page: places, ways of packets, problems",
                  .example = "affinityctl report machine.html",
                  .answer = report_fields},
                 globals, status, run_report);
    verb->add_option("FILE", options->file, "the page (- is standard output)")
        ->required()
        ->check(not_empty());
    add_repeated(*verb, "--policies", options->policies,
                 "with --root: a policy file or folder instead of the usual folders; may be given again",
                 "PATH");
}

} // namespace affinityctl
