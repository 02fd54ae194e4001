// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/activity.hpp"

#include "affinity-ttcp/engine/socket.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "irq/reader.hpp"
#include "netdev/addresses.hpp"
#include "netdev/reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::ttcp {

using measure::CpuReport;
using measure::LineReport;

namespace {

double grown(double first, double last) { return std::max(0.0, last - first); }

const CpuTime* find_cpu(const Activity& activity, unsigned cpu) {
    const auto at = std::find_if(activity.cpus.begin(), activity.cpus.end(),
                                 [&](const CpuTime& time) { return time.cpu == cpu; });
    return at == activity.cpus.end() ? nullptr : &*at;
}

/// Calls `take` with each line, a CPU and the number of interrupts that it took there, where there were any.
template <class Take>
void each_interrupt(const Activity& first, const Activity& last, Take take) {
    for (const auto& line : last.interrupts.irqs) {
        const auto* before = first.interrupts.find(line.number);
        if (before == nullptr || before->actions != line.actions) continue;
        for (std::size_t column = 0; column < line.counts.size() && column < last.interrupts.cpus.size();
             ++column) {
            const unsigned cpu = last.interrupts.cpus[column];
            const auto& columns = first.interrupts.cpus;
            const auto same =
                static_cast<std::size_t>(std::find(columns.begin(), columns.end(), cpu) - columns.begin());
            if (same < columns.size() && same < before->counts.size() &&
                line.counts[column] > before->counts[same])
                take(line, cpu, line.counts[column] - before->counts[same]);
        }
    }
}

using Counts = std::vector<std::pair<std::string, std::uint64_t>>;

/// The sum over the kinds that `wanted` names. No value if none is there, or one went back (a counter of 32
/// bits began anew).
template <class Wanted>
std::optional<std::uint64_t> grown_of(const Counts& first, const Counts& last, Wanted wanted) {
    std::optional<std::uint64_t> sum;
    for (const auto& [kind, now] : last) {
        if (!wanted(kind)) continue;
        const auto before = std::ranges::find(first, kind, &Counts::value_type::first);
        if (before == first.end() || now < before->second) return std::nullopt;
        sum = sum.value_or(0) + (now - before->second);
    }
    return sum;
}

bool is_ipi(std::string_view kind) { return kind == "RES" || kind == "CAL" || kind.starts_with("IPI"); }

std::optional<double> parse_decimal(std::string_view text) {
    double value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc{} || end != text.data() + text.size() || !(value > 0)) return std::nullopt;
    return value;
}

struct Mean {
    double sum = 0;
    unsigned count = 0;
    void add(double value) { sum += value, ++count; }
    [[nodiscard]] std::optional<double> value() const {
        return count == 0 ? std::nullopt : std::optional(sum / count);
    }
};

std::optional<double> by_cpufreq(const host::Root& root) {
    Mean mean;
    for (const unsigned cpu : root.sys().cpu_list("devices/system/cpu/online").value_or(CpuSet{})) {
        const auto khz =
            root.sys().number(fmt::format("devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", cpu));
        if (khz && *khz > 0) mean.add(static_cast<double>(*khz) * 1e3);
    }
    return mean.value();
}

std::optional<double> by_cpuinfo(const host::Root& root) {
    const auto text = root.proc().read("cpuinfo");
    if (!text || !*text) return std::nullopt;
    Mean mean;
    for (const auto line : split(**text, '\n')) {
        const auto colon = line.find(':');
        if (!line.starts_with("cpu MHz") || colon == std::string_view::npos) continue;
        if (const auto mhz = parse_decimal(trim_text(line.substr(colon + 1)))) mean.add(*mhz * 1e6);
    }
    return mean.value();
}

/// Source address of datagrams to the peer; none is sent. "" without a route.
std::string local_address_towards(const Address& peer) {
    const auto infos = look_up(peer, SOCK_DGRAM);
    if (!infos) return {};
    for (const auto* at = infos->get(); at != nullptr; at = at->ai_next) {
        const host::Fd socket(::socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        if (socket && ::connect(socket.get(), at->ai_addr, at->ai_addrlen) == 0)
            return address_of(socket.get());
    }
    return {};
}

std::string nic_towards(const host::Root& root, const Address& peer) {
    const auto address = local_address_towards(peer);
    auto nics = netdev::read_nics(root);
    if (address.empty() || !nics) return {};
    for (const auto& nic : *nics)
        if (nic.name != "lo" && std::ranges::find(nic.addresses, address) != nic.addresses.end())
            return nic.name;
    return {};
}

std::optional<double> bytes_of(const host::Root& root, const std::string& nic, const char* direction) {
    const auto count = root.sys().number(fmt::format("class/net/{}/statistics/{}_bytes", nic, direction));
    return count ? std::optional(static_cast<double>(*count)) : std::nullopt;
}

} // namespace

std::vector<CpuTime> parse_cpu_times(std::string_view text, double ticks_per_second) {
    std::vector<CpuTime> result;
    for (const auto line : split(text, '\n')) {
        if (!line.starts_with("cpu")) continue;
        const auto words = split_words(line);
        const auto number = parse_number<unsigned>(words.front().substr(3));
        if (!number || *number > CpuSet::max_cpu) continue;
        std::array<double, 8> columns{};
        bool is_whole = words.size() >= 5;
        for (std::size_t i = 1; i < words.size() && i <= columns.size(); ++i) {
            const auto ticks = parse_number<std::uint64_t>(words[i]);
            is_whole = is_whole && ticks;
            columns[i - 1] = static_cast<double>(ticks.value_or(0)) / ticks_per_second;
        }
        if (!is_whole) continue;
        result.push_back({*number, columns[0], columns[1], columns[2], columns[3], columns[4], columns[5],
                          columns[6], columns[7]});
    }
    return result;
}

Activity read_activity(const host::Root& root) {
    Activity activity;
    activity.at = monotonic_seconds();
    const auto ticks = static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
    if (const auto text = root.proc().read("stat"); text && *text)
        activity.cpus = parse_cpu_times(**text, ticks);
    if (const auto text = root.proc().read("interrupts"); text && *text)
        activity.interrupts = irq::parse_interrupts(**text);
    if (const auto text = root.proc().read("softirqs"); text && *text)
        activity.softirqs = parse_softirqs(**text);
    return activity;
}

std::vector<CpuReport> cpus_between(const Activity& first, const Activity& last) {
    std::vector<CpuReport> result;
    for (const auto& now : last.cpus) {
        const auto* before = find_cpu(first, now.cpu);
        if (before == nullptr) continue;
        result.push_back({now.cpu, grown(before->user + before->nice, now.user + now.nice),
                          grown(before->system, now.system), grown(before->irq, now.irq),
                          grown(before->softirq, now.softirq), 0});
    }
    each_interrupt(first, last, [&](const irq::Irq&, unsigned cpu, std::uint64_t count) {
        const auto at = std::find_if(result.begin(), result.end(),
                                     [&](const CpuReport& report) { return report.cpu == cpu; });
        if (at != result.end()) at->interrupts += count;
    });
    return result;
}

std::vector<LineReport> lines_between(const Activity& first, const Activity& last) {
    std::vector<LineReport> result;
    each_interrupt(first, last, [&](const irq::Irq& line, unsigned cpu, std::uint64_t count) {
        std::string label;
        for (const auto& action : line.actions)
            label += (label.empty() ? "" : ", ") + action;
        result.push_back({line.number, label.substr(0, 256), cpu, count});
    });
    return result;
}

std::optional<double> busy_between(const Activity& first, const Activity& last) {
    double busy = 0, all = 0;
    for (const auto& now : last.cpus) {
        const auto* before = find_cpu(first, now.cpu);
        if (before == nullptr) continue;
        const double used = grown(before->busy(), now.busy());
        busy += used;
        all += used + grown(before->idle + before->iowait, now.idle + now.iowait);
    }
    if (all <= 0) return std::nullopt;
    return busy / all;
}

SoftirqCounts parse_softirqs(std::string_view text) {
    SoftirqCounts counts;
    for (const auto line : split(text, '\n')) {
        const auto colon = line.find(':');
        if (colon == std::string_view::npos) continue; // the heading, with the CPUs
        std::uint64_t sum = 0;
        bool is_whole = true;
        const auto words = split_words(line.substr(colon + 1));
        for (const auto word : words) {
            const auto count = parse_number<std::uint64_t>(word);
            is_whole = is_whole && count;
            sum += count.value_or(0);
        }
        const auto kind = trim_text(line.substr(0, colon));
        if (is_whole && !words.empty() && !kind.empty()) counts.emplace_back(kind, sum);
    }
    return counts;
}

KernelCounts counts_between(const Activity& first, const Activity& last) {
    KernelCounts counts;
    for (const auto& line : lines_between(first, last))
        counts.interrupts += line.count;
    counts.ipis = grown_of(first.interrupts.special, last.interrupts.special, is_ipi);
    const auto of = [&](std::string_view kind) {
        return grown_of(first.softirqs, last.softirqs, [&](const std::string& one) { return one == kind; });
    };
    counts.net_rx = of("NET_RX");
    counts.net_tx = of("NET_TX");
    return counts;
}

bool tells_interrupt_time(const Activity& activity) {
    return std::ranges::any_of(activity.cpus, [](const CpuTime& cpu) { return cpu.irq > 0; });
}

std::optional<double> read_frequency(const host::Root& root) {
    const auto hz = by_cpufreq(root);
    return hz ? hz : by_cpuinfo(root);
}

Busyness look_around(const host::Root& root, const std::optional<Address>& peer, double seconds) {
    Busyness busyness;
    if (peer) busyness.nic = nic_towards(root, *peer);
    const auto first = read_activity(root);
    const auto received = bytes_of(root, busyness.nic, "rx");
    const auto sent = bytes_of(root, busyness.nic, "tx");
    ::usleep(static_cast<useconds_t>(seconds * 1e6));
    const auto last = read_activity(root);
    busyness.cpus = busy_between(first, last);
    const auto speed =
        root.sys().number("class/net/" + busyness.nic + "/speed"); // Mbit/s; -1 where there is none
    const auto now_received = bytes_of(root, busyness.nic, "rx");
    const auto now_sent = bytes_of(root, busyness.nic, "tx");
    if (!busyness.nic.empty() && received && sent && now_received && now_sent && speed && *speed > 0 &&
        last.at > first.at) {
        const double most = std::max({0.0, *now_received - *received, *now_sent - *sent});
        busyness.link = most * 8 / (last.at - first.at) / (static_cast<double>(*speed) * 1e6);
    }
    return busyness;
}

std::string why_busy(const Busyness& busyness, double bound) {
    if (busyness.cpus && *busyness.cpus > bound)
        return fmt::format("the machine is busy: {:.0f} % of its CPU time, the bound is {:.0f} %",
                           100 * *busyness.cpus, 100 * bound);
    if (busyness.link && *busyness.link > bound)
        return fmt::format("{} is busy: {:.0f} % of its speed, the bound is {:.0f} %", busyness.nic,
                           100 * *busyness.link, 100 * bound);
    return {};
}

} // namespace affinityd::ttcp
