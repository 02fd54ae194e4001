// SPDX-License-Identifier: Apache-2.0
#include "experiments/smt/reading.hpp"

#include "experiments/frame/timings.hpp"
#include "measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace affinityd::experiments {

namespace {

double plain_mean(const std::vector<double>& samples) {
    return samples.empty()
               ? 0
               : std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

/// By round, the mean of both threads.
std::vector<double> of_both(const CompanyTimes& times) {
    auto both = times.first;
    for (std::size_t i = 0; i < both.size() && i < times.second.size(); ++i)
        both[i] = (both[i] + times.second[i]) / 2;
    return both;
}

const CompanyTimes* times_of(const SmtTimes& times, Load load, Company company) {
    const auto found = std::ranges::find_if(
        times.companies, [&](const CompanyTimes& one) { return one.load == load && one.company == company; });
    return found == times.companies.end() ? nullptr : &*found;
}

CompanyFigures figures_of_company(const CompanyTimes& one, const CompanyTimes* alone, unsigned comparisons) {
    CompanyFigures figures{.load = one.load,
                           .company = one.company,
                           .cpus = one.cpus,
                           .seconds = mean_time(of_both(one)),
                           .first = plain_mean(one.first),
                           .second = plain_mean(one.second)};
    if (one.company != Company::alone && alone != nullptr)
        figures.longer = how_much_longer(alone->first, of_both(one), comparisons);
    return figures;
}

constexpr double wide = 0.2; ///< interval, from end to end, that says neither

std::string slowdown_words(const measure::Comparison& longer) {
    const auto percent = [](double part) { return measure::percent(part, 1) + " %"; };
    const auto& change = longer.change;
    if (longer.verdict == measure::Verdict::not_enough) return "had too few rounds to be compared";
    if (longer.verdict == measure::Verdict::none_shown)
        return (change.high - change.low > wide
                    ? "may take more or less time than alone, more rounds would tell ("
                    : "takes as long as alone, as far as this shows (") +
               percent(change.low) + " to " + percent(change.high) + ")";
    return fmt::format("takes {} {} than alone ({} to {})", percent(std::abs(change.estimate)),
                       change.estimate > 0 ? "longer" : "less", percent(change.low), percent(change.high));
}

std::string company_words(const CompanyFigures& one) {
    return fmt::format("{} {}: each {}", name_of(one.load),
                       one.company == Company::cores ? "on two cores" : "on two hardware threads of one core",
                       slowdown_words(one.longer));
}

std::string gain_words(const LoadReading& load) {
    const auto percent = std::lround(std::abs(*load.gain_together) * 100);
    return fmt::format("two {} on one core together get {} % {} done than one after the other",
                       name_of(load.load), percent, *load.gain_together >= 0 ? "more" : "less");
}

/// What a load stands for, and what its verdict means for a policy.
std::string load_words(const LoadReading& load) {
    const std::string kind = load.load == Load::accum
                                 ? "Work that waits most of its time for its own last result (accum): "
                                 : "Work that keeps the units of a core busy (sin): ";
    switch (load.verdict) {
    case SmtVerdict::share:
        return kind + "smt: share, two on one core are hardly in each other's way.";
    case SmtVerdict::avoid:
        return kind + "smt: avoid where each answer's time counts" +
               (load.gain_together.value_or(0) > 0
                    ? "; smt: share where only the sum of the work does, since two on one core get more done."
                    : ".");
    case SmtVerdict::none_shown:
        return kind + "no difference shown, so smt: share, the default, may stay.";
    case SmtVerdict::not_measured:
        break;
    }
    return kind + "too few rounds for a verdict.";
}

std::string meaning_of_smt(const SmtReading& reading, const SmtSeats& seats) {
    if (!seats.siblings)
        return "The key smt has nothing to decide here: " + seats.no_siblings +
               ". With smt: share and with smt: avoid, the CPUs are the same.";
    std::string text;
    for (const auto& load : reading.loads)
        text += (text.empty() ? "" : " ") + load_words(load);
    return text;
}

} // namespace

std::string_view name_of(SmtVerdict verdict) {
    constexpr std::array names{"smt: share", "smt: avoid", "no difference shown", "not measured"};
    return names[static_cast<std::size_t>(verdict)];
}

SmtVerdict verdict_of(const measure::Comparison& longer) {
    if (longer.verdict == measure::Verdict::not_enough) return SmtVerdict::not_measured;
    if (longer.change.low > little_slowdown) return SmtVerdict::avoid;
    if (longer.change.high <= little_slowdown) return SmtVerdict::share;
    return SmtVerdict::none_shown;
}

SmtReading read_smt(const SmtTimes& times, const SmtSeats& seats) {
    SmtReading reading;
    const auto comparisons = static_cast<unsigned>(
        std::max<std::ptrdiff_t>(1, std::ranges::count_if(times.companies, [](const CompanyTimes& one) {
                                     return one.company != Company::alone;
                                 })));
    for (const auto& one : times.companies)
        reading.companies.push_back(
            figures_of_company(one, times_of(times, one.load, Company::alone), comparisons));
    for (const Load load : loads)
        reading.loads.push_back({.load = load});
    for (const auto& one : reading.companies) {
        if (one.company != Company::alone) reading.findings.push_back(company_words(one));
        if (one.company != Company::siblings || !one.seconds) continue;
        auto& load = *std::ranges::find(reading.loads, one.load, &LoadReading::load);
        load.verdict = verdict_of(one.longer);
        // Two take the time of one run on one core; one after the other takes two runs alone.
        const double longer = 1 + one.longer.change.estimate;
        if (load.verdict != SmtVerdict::not_measured && longer > 0) {
            load.gain_together = 2 / longer - 1;
            reading.findings.push_back(gain_words(load));
        }
    }
    reading.meaning = meaning_of_smt(reading, seats);
    return reading;
}

std::string summary_of(const SmtReading& reading) {
    std::string text;
    for (const auto& load : reading.loads) {
        text += fmt::format("{}{}:", text.empty() ? "" : "; ", name_of(load.load));
        for (const auto& one : reading.companies)
            if (one.load == load.load)
                text += fmt::format(" {} {:.2f} ms,", name_of(one.company),
                                    (one.seconds ? one.seconds->estimate : one.first) * 1e3);
        text += fmt::format(" {}", name_of(load.verdict));
    }
    return text;
}

} // namespace affinityd::experiments
