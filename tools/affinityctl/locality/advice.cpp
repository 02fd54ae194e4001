// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/locality/advice.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace affinityctl {

using affinityd::counted;

namespace locality = affinityd::locality;

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

} // namespace

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
    if (facts.reads + facts.unknown < fewest_reads) return Advice::watch_longer;
    if (facts.cpus == 1) return Advice::one_cpu;
    if (facts.unknown > facts.reads) return Advice::not_known;
    if (facts.loopback * 2 > facts.reads) return Advice::loopback;
    if (facts.same_core >= local_enough) return Advice::nothing;
    if (facts.arrival_cpus <= 1 && facts.reader_cpus > 1) return Advice::more_queues;
    if (facts.listeners >= 2) return facts.steered_by.empty() ? Advice::steer_accept : Advice::explain;
    if (facts.listeners == 1 && facts.workers > 1) return Advice::reuseport;
    if (facts.listeners == 1 && facts.reader_cpus > 1) return Advice::steer_flows;
    if (facts.reader_cpus <= 1 && facts.workers <= 1) return Advice::bind_near;
    return Advice::steer_clients;
}

std::string_view word_of(Advice advice) {
    constexpr std::string_view words[] = {"watch_longer", "one_cpu",     "not_known",     "loopback",
                                          "nothing",      "more_queues", "steer_accept",  "reuseport",
                                          "steer_flows",  "bind_near",   "steer_clients", "explain"};
    return words[static_cast<std::size_t>(advice)];
}

std::string sentence_of(Advice advice, const LocalityFacts& facts) {
    const auto percent = fmt::format("{:.0f} %", facts.same_core * 100);
    switch (advice) {
    case Advice::watch_longer:
        return fmt::format(
            "Only {} in this time: watch while there is traffic, for longer (--for), or UDP, too (--udp).",
            counted(facts.reads + facts.unknown, "read"));
    case Advice::one_cpu:
        return "Nothing to do: one CPU is online, and everything is local.";
    case Advice::not_known:
        return "The kernel does not say of most reads where the packet arrived (UDP sockets without a peer): "
               "they cannot be judged this way.";
    case Advice::loopback:
        return "Most packets come over loopback, where no interrupt is: bind the two programs to one cache "
               "group "
               "(spread: llc) instead of steering.";
    case Advice::nothing:
        return fmt::format("Nothing to do: {} are read on the core where they arrive.", percent);
    case Advice::more_queues:
        return fmt::format(
            "One CPU takes in what {} CPUs read: give the interface more queues (ethtool -L), or where "
            "it has no more, spread the work by RPS.",
            facts.reader_cpus);
    case Advice::steer_accept:
        return fmt::format(
            "The workers have listeners of their own ({} at one port), but only {} are read on the core "
            "where they arrive: a policy with affinity: full and steer: accept brings them together.",
            facts.listeners, percent);
    case Advice::explain:
        return fmt::format(
            "Policy {} may already steer these listeners, but only {} are read on the core where they "
            "arrive: connections that were opened before stay as they are, and affinityctl explain PID "
            "tells which listeners are not steered, and why.",
            facts.steered_by, percent);
    case Advice::reuseport:
        return fmt::format(
            "{} processes share one listener: switch on reuseport in the server, then use affinity: full "
            "with steer: accept (a process for each connection: steer: tasks).",
            facts.workers);
    case Advice::steer_flows:
        return "The threads of one process share one listener: switch on reuseport in the server if it can, "
               "else use "
               "affinity: full with steer: flows.";
    case Advice::bind_near:
        return "One CPU reads what arrives on others: a policy with affinity: full puts the process and the "
               "interrupts together.";
    case Advice::steer_clients:
        break;
    }
    return fmt::format(
        "Only {} are read on the core where they arrive, and no listener decides who gets a connection: "
        "use affinity: full with steer: flows.",
        percent);
}

} // namespace affinityctl
