// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/locality/labels.hpp"

#include "affinityctl/values/counted.hpp"

#include <fmt/format.h>

namespace affinityctl {

std::string percent_of(double share, bool is_any) {
    return is_any ? fmt::format("{:.0f}%", share * 100) : "-";
}

std::string headline_of(const LocalityReport& report) {
    const auto& total = report.figures.total;
    const auto what = total.reads == 1 ? "read" : "reads";
    return fmt::format("{:.1f} s: {} {}{} by {} ({})", report.seen.seconds, grouped(total.reads),
                       report.seen.has_other_protocols ? "" : "TCP ", what,
                       counted(report.figures.workers.size(), "process", "processes"), report.subject);
}

std::string closing_of(const LocalityReport& report) {
    const auto sentence = sentence_of(advice_for(report.facts), report.facts);
    return report.busiest.empty() ? sentence : report.busiest + ", the busiest: " + sentence;
}

std::vector<std::string> remarks_of(const LocalityReport& report) {
    std::vector<std::string> remarks;
    const auto& seen = report.seen;
    remarks.insert(remarks.end(), seen.notes.begin(), seen.notes.end());
    if (report.figures.total.unknown > 0)
        remarks.push_back(
            fmt::format("Of {} the kernel does not say where the packet arrived; they are in no percentage.",
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

} // namespace affinityctl
