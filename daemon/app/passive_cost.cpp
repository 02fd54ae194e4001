// SPDX-License-Identifier: Apache-2.0
#include "app/passive_cost.hpp"

#include "base/text.hpp"
#include "host/root.hpp"
#include "measure/ttcp.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::app {

namespace {

using nlohmann::json;

constexpr double least_bytes = 1e6;  ///< below this a cost says nothing
constexpr std::array model_names{"none", "irq", "process", "full"};

double ticks_per_second() { return static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK))); }

std::uint64_t ticks_since_boot() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::uint64_t>((static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9) * ticks_per_second());
}

json per_gigabyte(double seconds, double bytes) { return bytes >= least_bytes ? json(seconds / (bytes / 1e9)) : json(nullptr); }

/// Sum of the numbers of a /proc/softirqs line.
double sum_of(const std::vector<std::string_view>& words) {
    double sum = 0;
    for (std::size_t i = 1; i < words.size(); ++i)
        sum += static_cast<double>(parse_number<std::uint64_t>(words[i]).value_or(0));
    return sum;
}

} // namespace

std::optional<double> network_softirq_seconds(std::string_view stat, std::string_view softirqs, double ticks) {
    std::optional<double> seconds;
    for (const auto line : split(stat, '\n')) {
        const auto words = split_words(line);
        if (words.size() < 8 || words[0] != "cpu") continue;
        if (const auto number = parse_number<std::uint64_t>(words[7])) seconds = static_cast<double>(*number) / ticks; // proc_stat(5): softirq
        break;
    }
    double all = 0, network = 0;
    for (const auto line : split(softirqs, '\n')) {
        const auto words = split_words(line);
        if (words.empty() || !words[0].ends_with(':')) continue;
        const double count = sum_of(words);
        all += count;
        if (words[0] == "NET_RX:" || words[0] == "NET_TX:") network += count;
    }
    if (!seconds || all <= 0) return std::nullopt;
    return *seconds * network / all;
}

PassiveCost::PassiveCost(const host::Root& root) : root_(root) {}

double PassiveCost::Policy::bytes() const {
    double sum = 0;
    for (const auto& [nic, traffic] : nics)
        sum += traffic.bytes;
    return sum;
}

/// What came and went. Over loopback each byte does both: it counts once.
std::optional<std::uint64_t> PassiveCost::counter_of(const std::string& nic) const {
    const auto received = root_.sys().number(fmt::format("class/net/{}/statistics/rx_bytes", nic));
    const auto sent = root_.sys().number(fmt::format("class/net/{}/statistics/tx_bytes", nic));
    if (!received || !sent) return std::nullopt;
    return static_cast<std::uint64_t>(*received) + (nic == "lo" ? 0 : static_cast<std::uint64_t>(*sent));
}

std::optional<CpuLedger::Entry> PassiveCost::read(const TaskId& id) const {
    const auto text = root_.proc().text(fmt::format("{}/stat", id.tid));
    if (!text) return std::nullopt;
    const auto name_end = text->rfind(')');
    if (name_end == std::string::npos) return std::nullopt;
    const auto words = split_words(std::string_view(*text).substr(name_end + 1));
    // proc_pid_stat(5): 4 parent, 14 to 17 utime, stime, cutime, cstime, 22 start time; the name was field 2.
    if (words.size() < 20 || parse_number<std::uint64_t>(words[19]) != id.start_time) return std::nullopt;
    double ticks = 0;
    for (std::size_t field = 11; field <= 14; ++field)
        ticks += static_cast<double>(parse_number<std::uint64_t>(words[field]).value_or(0));
    return CpuLedger::Entry{id, parse_number<int>(words[1]).value_or(0), ticks / ticks_per_second()};
}

PassiveCost::Policy& PassiveCost::policy(const std::string& name) {
    const auto found = policies_.find(name);
    if (found != policies_.end()) return found->second;
    return policies_.emplace(name, Policy(ticks_since_boot(), measure::monotonic_seconds())).first->second;
}

void PassiveCost::see(const TaskId& id, const std::string& name, bool ending) {
    const auto entry = read(id);
    if (!entry) return;
    auto& policy = this->policy(name);
    if (ending) policy.ledger.note(*entry);
    else policy.living.push_back(*entry);
}

void PassiveCost::add_up(const World& world) {
    const double now = measure::monotonic_seconds();
    std::map<std::string, double> grown;
    for (const auto& nic : world.machine().nics) {
        const auto counter = counter_of(nic.name);
        auto& traffic = all_nics_[nic.name];
        if (counter && traffic.last && *counter > *traffic.last) grown[nic.name] = static_cast<double>(*counter - *traffic.last);
        traffic.last = counter;
    }
    for (const auto& one : world.policies().policies) {
        const auto nics = planner::policy_nics(one, world.machine(), world.serving());
        auto& policy = this->policy(one.name);
        policy.model = model_names[static_cast<std::size_t>(one.model)];
        policy.ledger.look(policy.living);
        policy.living.clear();
        policy.until = now;
        for (const auto& nic : nics)
            policy.nics[nic].bytes += grown.contains(nic) ? grown[nic] : 0;
    }
    add_softirqs(grown);
}

/// The network's softirq time is the machine's; an interface's part is taken to be its part of the bytes. An estimate, and on kernels
/// without CONFIG_IRQ_TIME_ACCOUNTING it is in the processes' time already: it is shown beside that, never added to it.
void PassiveCost::add_softirqs(const std::map<std::string, double>& grown) {
    const auto stat = root_.proc().read("stat", 4096);
    const auto softirqs = root_.proc().read("softirqs");
    if (!stat || !*stat || !softirqs || !*softirqs) return;
    const auto now = network_softirq_seconds(**stat, **softirqs, ticks_per_second());
    const double spent = now && softirqs_ ? std::max(0.0, *now - *softirqs_) : 0;
    softirqs_ = now;
    double all = 0;
    for (const auto& [nic, bytes] : grown)
        all += bytes;
    for (auto& [name, policy] : policies_)
        for (const auto& [nic, traffic] : policy.nics)
            if (const auto part = grown.find(nic); part != grown.end() && all > 0) policy.softirq_seconds += spent * part->second / all;
}

std::vector<state::MeasurementRecord> PassiveCost::close(std::int64_t now) {
    std::vector<state::MeasurementRecord> records;
    std::map<std::string, Past> past;
    for (const auto& [name, policy] : policies_) {
        const double bytes = policy.bytes();
        if (bytes < least_bytes) continue;
        past[name] = {bytes, policy.ledger.total(), policy.model};
        for (const auto& [nic, traffic] : policy.nics) {
            if (traffic.bytes <= 0) continue;
            state::MeasurementRecord record;
            record.time = now;
            record.kind = "passive";
            record.outcome = "done";
            record.path = nic;
            record.model = policy.model;
            record.policies = name;
            record.seconds = policy.until - policy.since;
            record.bytes = static_cast<std::uint64_t>(traffic.bytes);
            record.bits_per_second = record.seconds > 0 ? traffic.bytes * 8 / record.seconds : 0;
            record.cpu_seconds = policy.ledger.total() * traffic.bytes / bytes;
            records.push_back(std::move(record));
        }
    }
    for (auto& [name, one] : past)
        before_[name] = std::move(one); // one that has seen no traffic keeps the figure of the time before
    policies_.clear();
    return records;
}

json PassiveCost::to_json() const {
    json list = json::array();
    for (const auto& [name, policy] : policies_) {
        if (policy.nics.empty()) continue;
        const double bytes = policy.bytes();
        json nics = json::array();
        for (const auto& [nic, traffic] : policy.nics)
            nics.push_back({{"nic", nic}, {"bytes", traffic.bytes}});
        json value{{"policy", name},
                   {"model", policy.model},
                   {"seconds", std::max(0.0, policy.until - policy.since)},
                   {"nics", std::move(nics)},
                   {"bytes", bytes},
                   {"cpu_seconds", policy.ledger.total()},
                   {"cpu_seconds_per_gb", per_gigabyte(policy.ledger.total(), bytes)},
                   {"softirq_seconds_per_gb", per_gigabyte(policy.softirq_seconds, bytes)},
                   {"before", nullptr}};
        if (const auto past = before_.find(name); past != before_.end())
            value["before"] = {{"model", past->second.model}, {"cpu_seconds_per_gb", per_gigabyte(past->second.cpu_seconds, past->second.bytes)}};
        list.push_back(std::move(value));
    }
    return list;
}

} // namespace affinityd::app
