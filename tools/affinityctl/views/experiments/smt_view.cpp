// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/experiments/smt_view.hpp"

#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/experiments/figure_words.hpp"
#include "affinityctl/views/table.hpp"
#include "measure/statistics.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;
namespace measure = affinityd::measure;
using experiments::Company;
using nlohmann::json;

namespace {

std::string smt_cpus(const experiments::CompanyFigures& figures) {
    return figures.company == Company::alone ? std::to_string(figures.cpus.a)
                                             : fmt::format("{} and {}", figures.cpus.a, figures.cpus.b);
}

std::string smt_method(const SmtView& view, const MeasuredOn& on) {
    const auto rounds = view.times.companies.empty() ? 0 : view.times.companies.front().first.size();
    return fmt::format("{} numbers for each thread; {}; mean times with 95 % intervals; it took {:.1f} s",
                       grouped(view.times.how.numbers), counted(rounds, "round"), on.seconds);
}

std::string smt_title(const MeasuredOn& on) {
    return "Two threads on one core" + (on.model.empty() ? std::string() : " (" + printable(on.model) + ")");
}

std::string company_table(const SmtView& view, const Page& page) {
    Table table({"LOAD", "WHERE", "CPUS", "MS", "THAN ALONE", "EACH"});
    for (const auto& one : view.reading.companies) {
        const bool is_alone = one.company == Company::alone;
        table.add({std::string(name_of(one.load)), std::string(name_of(one.company)), smt_cpus(one),
                   ms_words(one.seconds), is_alone ? "-" : change_words(one.longer),
                   is_alone ? "-" : fmt::format("{:.2f}, {:.2f}", one.first * 1e3, one.second * 1e3)});
    }
    return table.folded(page, 2);
}

std::string verdict_table(const SmtView& view, const Page& page) {
    Table table({"LOAD", "VERDICT", "TWO ON ONE CORE AGAINST ONE AFTER THE OTHER"});
    for (const auto& load : view.reading.loads)
        table.add(
            {std::string(name_of(load.load)), std::string(name_of(load.verdict)),
             load.gain_together ? measure::signed_percent(*load.gain_together, 0) + " % work done" : "-"});
    return table.folded(page);
}

std::string launch_table(const SmtView& view, const Page& page) {
    Table table({"THREAD", "CPUS WHILE FREE", "PINNED TO", "CPUS THEN"});
    for (std::size_t i = 0; i < view.launched.size(); ++i)
        table.add({fmt::format("#{}", i), fmt::format("{}", fmt::join(view.launched[i].before, " ")),
                   std::to_string(view.launched[i].pinned_to),
                   fmt::format("{}", fmt::join(view.launched[i].after, " "))});
    return table.folded(page);
}

std::string topology_table(const SmtView& view, const Page& page) {
    Table table({"THIS MACHINE", ""});
    for (const auto& [name, value] : view.topology)
        table.add({name, value});
    return table.to_string(page);
}

std::vector<TimeBar> smt_bars(const SmtView& view) {
    std::vector<TimeBar> bars;
    for (const auto& one : view.reading.companies)
        bars.push_back({.label = fmt::format("{}, {}", name_of(one.load), name_of(one.company)),
                        .seconds = one.seconds,
                        .note = one.company == Company::alone ? "" : change_words(one.longer),
                        .kind = static_cast<unsigned>(one.company)});
    return bars;
}

/// What could not be measured, and what was found.
std::vector<std::string> smt_sentences(const SmtView& view, const MeasuredOn& on) {
    std::vector<std::string> all;
    for (const auto& finding : view.reading.findings)
        all.push_back(as_sentence(finding));
    if (!view.seats.siblings) all.push_back("One core is not measured: " + view.seats.no_siblings + ".");
    if (!view.seats.cores) all.push_back("Two cores are not measured: " + view.seats.no_cores + ".");
    for (const auto& remark : on.remarks)
        all.push_back(as_sentence(remark));
    return all;
}

} // namespace

std::string smt_text(const SmtView& view, const MeasuredOn& on, const Page& page) {
    auto text = topology_table(view, page) + "\n" + launch_table(view, page);
    text +=
        wrapped("Threads go where there is room, until they are pinned. affinityctl watch shows the same of "
                "threads under policy, as they run.",
                "", page) +
        "\n";
    text += bold(smt_title(on), page.color) + "\n" + wrapped(smt_method(view, on), "  ", page) + "\n";
    text += company_table(view, page) + "\n";
    if (const auto bars = time_bars(smt_bars(view), page); !bars.empty()) text += bars + "\n";
    text += verdict_table(view, page) + "\n";
    for (const auto& sentence : smt_sentences(view, on))
        text += wrapped(sentence, "* ", page);
    return text + wrapped(view.reading.meaning, "", page);
}

json smt_json(const SmtView& view, const MeasuredOn& on) {
    json companies = json::array(), loads = json::array(), launched = json::array(),
         topology = json::object();
    for (const auto& one : view.reading.companies)
        companies.push_back({{"load", name_of(one.load)},
                             {"company", key_of(one.company)},
                             {"cpus", {one.cpus.a, one.cpus.b}},
                             {"ms", ms_json(one.seconds)},
                             {"first_ms", one.first * 1e3},
                             {"second_ms", one.company == Company::alone ? json() : json(one.second * 1e3)},
                             {"longer_than_alone", change_json(one.longer)}});
    for (const auto& load : view.reading.loads)
        loads.push_back({{"load", name_of(load.load)},
                         {"verdict", name_of(load.verdict)},
                         {"gain_together", load.gain_together ? json(*load.gain_together) : json()}});
    for (const auto& thread : view.launched)
        launched.push_back(
            {{"free", thread.before}, {"pinned_to", thread.pinned_to}, {"pinned", thread.after}});
    for (const auto& [name, value] : view.topology)
        topology[name] = value;
    const auto or_nothing = [](const std::string& text) { return text.empty() ? json() : json(text); };
    return {{"model", on.model},
            {"cpus", on.cpus},
            {"numbers", view.times.how.numbers},
            {"topology", std::move(topology)},
            {"launched", std::move(launched)},
            {"companies", std::move(companies)},
            {"loads", std::move(loads)},
            {"no_siblings", or_nothing(view.seats.no_siblings)},
            {"no_cores", or_nothing(view.seats.no_cores)},
            {"taken_again", view.times.interrupted},
            {"findings", view.reading.findings},
            {"meaning", view.reading.meaning},
            {"remarks", on.remarks},
            {"seconds", on.seconds}};
}

std::string smt_svg(const SmtView& view, const MeasuredOn& on) {
    BarCaptions captions{
        .title = smt_title(on), .subtitle = smt_method(view, on), .notes = smt_sentences(view, on)};
    captions.notes.push_back(view.reading.meaning);
    return time_bars_svg(captions, smt_bars(view));
}

} // namespace affinityctl
