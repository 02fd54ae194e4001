// SPDX-License-Identifier: Apache-2.0
#include "app/passive_cost.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::app {

namespace {

using nlohmann::json;

constexpr double least_bytes = 1e6;  ///< below this a cost says nothing
constexpr std::size_t most_past = 8; ///< periods remembered for each policy
constexpr std::array model_names{"none", "irq", "process", "full"};

double ticks_per_second() { return static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK))); }

std::uint64_t ticks_since_boot() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::uint64_t>(
        (static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9) * ticks_per_second());
}

json per_gigabyte(double seconds, double bytes) {
    return bytes >= least_bytes ? json(seconds / (bytes / 1e9)) : json(nullptr);
}

/// Sum of the numbers of a /proc/softirqs line.
double sum_of(const std::vector<std::string_view>& words) {
    double sum = 0;
    for (std::size_t i = 1; i < words.size(); ++i)
        sum += static_cast<double>(parse_number<std::uint64_t>(words[i]).value_or(0));
    return sum;
}

} // namespace

std::optional<double> network_softirq_seconds(std::string_view stat, std::string_view softirqs,
                                              double ticks) {
    std::optional<double> seconds;
    for (const auto line : split(stat, '\n')) {
        const auto words = split_words(line);
        if (words.size() < 8 || words[0] != "cpu") continue;
        if (const auto number = parse_number<std::uint64_t>(words[7]))
            seconds = static_cast<double>(*number) / ticks; // proc_stat(5): softirq
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

double PassiveCost::Period::bytes() const {
    double sum = 0;
    for (const auto& [nic, bytes] : nics)
        sum += bytes;
    return sum;
}

void PassiveCost::Period::look(const Growth& growth, double now) {
    ledger.look(living);
    living.clear();
    for (auto& [nic, bytes] : nics) {
        const auto grown = growth.find(nic);
        if (grown == growth.end()) continue;
        bytes += grown->second.bytes;
        softirq_seconds += grown->second.softirq_seconds;
    }
    until = now;
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

PassiveCost::Period& PassiveCost::period(const std::string& policy) {
    const auto found = periods_.find(policy);
    if (found != periods_.end()) return found->second;
    return periods_.emplace(policy, Period(ticks_since_boot(), monotonic_seconds())).first->second;
}

void PassiveCost::begin_pass() {
    for (auto& [name, period] : periods_)
        period.living.clear();
}

void PassiveCost::see(const TaskId& id, const std::string& policy, bool ending) {
    const auto entry = read(id);
    if (!entry) return;
    auto& now = period(policy);
    if (ending)
        now.ledger.note(*entry);
    else
        now.living.push_back(*entry);
}

PassiveCost::Growth PassiveCost::growth(const World& world) {
    Growth growth;
    for (const auto& nic : world.machine().nics) {
        const auto counter = counter_of(nic.name);
        auto& last = counters_[nic.name];
        if (counter && last && *counter > *last)
            growth[nic.name].bytes = static_cast<double>(*counter - *last);
        last = counter;
    }
    share_softirqs(growth);
    return growth;
}

/// The network's softirq time is the machine's; an interface's part is taken to be its part of the bytes. An
/// estimate, and on kernels without CONFIG_IRQ_TIME_ACCOUNTING it is in the processes' time already: it is
/// shown beside that, never added to it.
void PassiveCost::share_softirqs(Growth& growth) {
    const auto stat = root_.proc().read("stat", 4096);
    const auto softirqs = root_.proc().read("softirqs");
    if (!stat || !*stat || !softirqs || !*softirqs) return;
    const auto now = network_softirq_seconds(**stat, **softirqs, ticks_per_second());
    const double spent = now && softirqs_ ? std::max(0.0, *now - *softirqs_) : 0;
    softirqs_ = now;
    double all = 0;
    for (const auto& [nic, grown] : growth)
        all += grown.bytes;
    for (auto& [nic, grown] : growth)
        grown.softirq_seconds = spent * grown.bytes / all;
}

PassiveCost::Records PassiveCost::add_up(const World& world, const planner::Serving& used, std::int64_t now) {
    Records records;
    const Growth grown = growth(world);
    const double at = monotonic_seconds();
    std::set<std::string> policies;
    for (const auto& one : world.policies().policies) {
        policies.insert(one.name);
        auto* current = &period(one.name);
        auto living = current->living;
        const bool is_new = current->until == 0;
        current->look(grown, at); // a new one has no interfaces yet
        if (!is_new && current->text_hash != one.text_hash) {
            close(one.name, *current, now, records);
            periods_.erase(one.name);
            current = &period(one.name);
            current->living = std::move(living);
            current->look({}, at);
        }
        current->text_hash = one.text_hash;
        current->model = model_names[static_cast<std::size_t>(one.model)];
        for (const auto& nic :
             planner::policy_nics(one, world.machine(), used.contains(one.name) ? used : world.serving()))
            current->nics.try_emplace(nic, 0);
    }
    for (auto& [name, gone] : periods_) {
        if (policies.contains(name)) continue;
        gone.look(grown, at);
        close(name, gone, now, records);
    }
    std::erase_if(periods_, [&](const auto& entry) { return !policies.contains(entry.first); });
    return records;
}

PassiveCost::Records PassiveCost::finish(const World& world, std::int64_t now) {
    Records records;
    const Growth grown = growth(world);
    const double at = monotonic_seconds();
    for (auto& [name, period] : periods_) {
        period.look(grown, at);
        close(name, period, now, records);
    }
    periods_.clear();
    return records;
}

void PassiveCost::close(const std::string& policy, const Period& period, std::int64_t now, Records& records) {
    const double bytes = period.bytes();
    if (bytes < least_bytes) return;
    remember(policy, {now, period.text_hash, bytes, period.ledger.total(), period.model});
    for (const auto& [nic, part] : period.nics) {
        if (part <= 0) continue;
        state::MeasurementRecord record;
        record.time = now;
        record.kind = "passive";
        record.outcome = "done";
        record.path = nic;
        record.model = period.model;
        record.policies = policy;
        record.seconds = period.until - period.since;
        record.bytes = static_cast<std::uint64_t>(part);
        record.bits_per_second = record.seconds > 0 ? part * 8 / record.seconds : 0;
        record.cpu_seconds = period.ledger.total() * part / bytes;
        record.detail = json{{"text_hash", period.text_hash}}.dump();
        records.push_back(std::move(record));
    }
}

void PassiveCost::remember(const std::string& policy, const Past& past) {
    auto& list = past_[policy];
    list.push_back(past);
    if (list.size() > most_past) list.erase(list.begin());
}

void PassiveCost::recall(const Records& records) {
    for (const auto& record : records) {
        const auto detail = json::parse(record.detail, nullptr, false);
        if (!detail.is_object() || !detail.contains("text_hash") || !detail["text_hash"].is_number_unsigned())
            continue;
        const Past part{record.time, detail["text_hash"].get<std::uint64_t>(),
                        static_cast<double>(record.bytes), record.cpu_seconds, record.model};
        auto& list = past_[record.policies];
        // The interfaces of one period were kept one by one.
        if (list.empty() ||
            std::tie(list.back().time, list.back().text_hash) != std::tie(part.time, part.text_hash)) {
            remember(record.policies, part);
            continue;
        }
        list.back().bytes += part.bytes;
        list.back().cpu_seconds += part.cpu_seconds;
    }
}

const PassiveCost::Past* PassiveCost::before(const std::string& policy, std::uint64_t text_hash) const {
    const auto list = past_.find(policy);
    if (list == past_.end()) return nullptr;
    const auto last = std::ranges::find_if(list->second.rbegin(), list->second.rend(),
                                           [&](const Past& past) { return past.text_hash != text_hash; });
    return last == list->second.rend() ? nullptr : &*last;
}

json PassiveCost::to_json() const {
    std::map<std::string, unsigned> sharers;
    for (const auto& [name, period] : periods_)
        for (const auto& [nic, bytes] : period.nics)
            ++sharers[nic];
    json list = json::array();
    for (const auto& [name, period] : periods_) {
        if (period.nics.empty()) continue;
        const double bytes = period.bytes();
        json nics = json::array();
        for (const auto& [nic, part] : period.nics)
            nics.push_back({{"nic", nic}, {"bytes", part}, {"shared", sharers[nic] > 1}});
        json value{{"policy", name},
                   {"model", period.model},
                   {"seconds", std::max(0.0, period.until - period.since)},
                   {"nics", std::move(nics)},
                   {"bytes", bytes},
                   {"cpu_seconds", period.ledger.total()},
                   {"cpu_seconds_per_gb", per_gigabyte(period.ledger.total(), bytes)},
                   {"softirq_seconds_per_gb", per_gigabyte(period.softirq_seconds, bytes)},
                   {"before", nullptr}};
        if (const auto* past = before(name, period.text_hash))
            value["before"] = {{"model", past->model},
                               {"ended_at", past->time},
                               {"bytes", past->bytes},
                               {"cpu_seconds", past->cpu_seconds},
                               {"cpu_seconds_per_gb", per_gigabyte(past->cpu_seconds, past->bytes)}};
        list.push_back(std::move(value));
    }
    return list;
}

} // namespace affinityd::app
