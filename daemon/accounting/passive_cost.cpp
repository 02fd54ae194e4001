// SPDX-License-Identifier: Apache-2.0
#include "accounting/passive_cost.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::accounting {

namespace {

constexpr std::size_t most_past = 8;        ///< periods remembered for each policy
constexpr std::size_t most_policies = 4096; ///< a history may name any number of them
constexpr std::string_view detail_head = "{\"text_hash\":";

/// Received and sent bytes; over loopback each byte does both and counts once.
std::optional<double> bytes_of(const host::Root& root, const std::string& nic) {
    const auto received = root.sys().number(fmt::format("class/net/{}/statistics/rx_bytes", nic));
    const auto sent = root.sys().number(fmt::format("class/net/{}/statistics/tx_bytes", nic));
    if (!received || !sent) return std::nullopt;
    return static_cast<double>(*received) + (nic == "lo" ? 0 : static_cast<double>(*sent));
}

/// A file of the group; where version 1 is mounted as well, version 2 is beside it.
std::optional<std::string> read_of_group(const host::Root& root, const std::string& group, const char* file) {
    auto text = root.sys().text(fmt::format("fs/cgroup{}/{}", group, file));
    return text ? std::move(text) : root.sys().text(fmt::format("fs/cgroup/unified{}/{}", group, file));
}

/// The time of a group is part of that of each group above it.
bool has_ancestor(const std::set<std::string>& groups, const std::string& group) {
    for (auto end = group.rfind('/'); end != 0 && end != std::string::npos; end = group.rfind('/', end - 1))
        if (groups.contains(group.substr(0, end))) return true;
    return false;
}

double sum_of(const auto& counters) {
    double sum = 0;
    for (const auto& [name, counter] : counters)
        sum += counter.grown;
    return sum;
}

} // namespace

std::optional<double> seconds_of(const host::Root& root, const std::string& group) {
    const auto text = read_of_group(root, group, "cpu.stat");
    if (!text) return std::nullopt;
    const auto words = split_words(std::string_view(*text).substr(0, text->find('\n')));
    if (words.size() != 2 || words[0] != "usage_usec") return std::nullopt;
    return parse_number<std::uint64_t>(words[1]).transform([](auto usec) { return usec / 1e6; });
}

std::vector<int> members_of(const host::Root& root, const std::string& group) {
    std::vector<int> members;
    const auto text = read_of_group(root, group, "cgroup.procs").value_or("");
    for (const auto word : split_words(text))
        if (const auto pid = parse_number<int>(word)) members.push_back(*pid);
    return members;
}

/// `counts_anew`: a counter that fell began again at zero.
void PassiveCost::Counter::take(std::optional<double> now, bool counts_anew) {
    if (now && last && *now >= *last) grown += *now - *last;
    if (now && last && *now < *last && counts_anew) grown += *now;
    last = now;
}

double PassiveCost::Period::bytes() const { return sum_of(nics); }
double PassiveCost::Period::cpu_seconds() const { return left + sum_of(groups); }

void PassiveCost::remember(const std::string& policy, PastCost past) {
    if (past_.size() >= most_policies && !past_.contains(policy)) return;
    auto& list = past_[policy];
    list.push_back(std::move(past));
    if (list.size() > most_past) list.erase(list.begin());
}

void PassiveCost::recall(const Records& records) {
    for (const auto& record : records) {
        auto detail = std::string_view(record.detail);
        if (!detail.starts_with(detail_head) || !detail.ends_with('}')) continue;
        detail.remove_prefix(detail_head.size());
        detail.remove_suffix(1);
        const auto text_hash = parse_number<std::uint64_t>(detail);
        if (!text_hash) continue;
        remember(record.policies, {record.time, *text_hash, static_cast<double>(record.bytes),
                                   record.cpu_seconds, record.model});
    }
}

void PassiveCost::begin(std::vector<CostSubject> subjects, std::int64_t now) {
    subjects_ = std::move(subjects);
    now_ = now;
    ended_.clear();
    std::set<std::string_view> names;
    for (const auto& subject : subjects_)
        names.insert(subject.policy);
    for (const auto& [name, period] : periods_)
        if (!names.contains(name)) ended_.push_back(name);
}

bool PassiveCost::step(const std::function<bool()>& out_of_time) {
    while (!ended_.empty() || !subjects_.empty()) {
        if (!ended_.empty()) {
            auto ended = periods_.extract(ended_.back());
            ended_.pop_back();
            read(ended.mapped());
            close(ended.mapped());
        } else {
            settle(std::move(subjects_.back()));
            subjects_.pop_back();
        }
        if (out_of_time()) break;
    }
    return ended_.empty() && subjects_.empty();
}

void PassiveCost::read(Period& period) {
    for (auto& [nic, counter] : period.nics)
        counter.take(bytes_of(root_, nic), false);
    for (auto& [group, counter] : period.groups)
        counter.take(seconds_of(root_, group), true);
    period.until = monotonic_seconds();
}

/// Adds up to now, begins another period if the text is another, and takes over interfaces and groups, which
/// count from now where they are new.
void PassiveCost::settle(CostSubject subject) {
    const auto [at, is_new] = periods_.try_emplace(subject.policy);
    auto& period = at->second;
    read(period);
    const double now = period.until;
    if (!is_new && period.subject.text_hash != subject.text_hash) {
        close(period);
        period = {};
    }
    if (period.since == 0) period.since = now;
    period.until = now;
    for (const auto& nic : subject.nics)
        if (const auto [counter, is_first] = period.nics.try_emplace(nic); is_first)
            counter->second.take(bytes_of(root_, nic), false);
    std::erase_if(period.groups, [&](const auto& group) {
        const bool is_gone = !subject.groups.contains(group.first);
        if (is_gone) period.left += group.second.grown;
        return is_gone;
    });
    for (const auto& group : subject.groups)
        if (!has_ancestor(subject.groups, group))
            if (const auto [counter, is_first] = period.groups.try_emplace(group); is_first)
                counter->second.take(seconds_of(root_, group), true);
    period.subject = std::move(subject);
}

void PassiveCost::close(const Period& period) {
    const double bytes = period.bytes();
    if (bytes < least_bytes) return;
    const auto& subject = period.subject;
    const std::string model(to_string(subject.model));
    remember(subject.policy, {now_, subject.text_hash, bytes, period.cpu_seconds(), model});
    state::MeasurementRecord record;
    record.time = now_;
    record.kind = "passive";
    record.outcome = "done";
    for (const auto& [nic, counter] : period.nics)
        if (counter.grown > 0) record.path += (record.path.empty() ? "" : ",") + nic;
    record.model = model;
    record.policies = subject.policy;
    record.seconds = period.until - period.since;
    record.bytes = static_cast<std::uint64_t>(bytes);
    record.bits_per_second = record.seconds > 0 ? bytes * 8 / record.seconds : 0;
    record.cpu_seconds = period.cpu_seconds();
    record.detail = fmt::format("{}{}}}", detail_head, subject.text_hash);
    closed_.push_back(std::move(record));
}

std::optional<double> PassiveCost::bytes(const std::string& policy) {
    const auto period = periods_.find(policy);
    if (period == periods_.end()) return std::nullopt;
    read(period->second);
    return period->second.bytes();
}

const std::set<std::string>* PassiveCost::groups(const std::string& policy) const {
    const auto period = periods_.find(policy);
    return period == periods_.end() ? nullptr : &period->second.subject.groups;
}

CostReport PassiveCost::report() const {
    std::map<std::string_view, unsigned> sharers;
    for (const auto& [name, period] : periods_)
        for (const auto& [nic, counter] : period.nics)
            ++sharers[nic];
    CostReport report;
    for (const auto& [name, period] : periods_) {
        if (period.nics.empty()) continue;
        auto& cost = report.emplace_back();
        cost.policy = name;
        cost.model = to_string(period.subject.model);
        cost.seconds = period.until - period.since;
        for (const auto& [nic, counter] : period.nics)
            cost.nics.push_back({nic, counter.grown, sharers[nic] > 1});
        cost.bytes = period.bytes();
        cost.cpu_seconds = period.cpu_seconds();
        const auto list = past_.find(name);
        if (list == past_.end()) continue;
        const auto last =
            std::ranges::find_if(list->second.rbegin(), list->second.rend(), [&](const auto& past) {
                return past.text_hash != period.subject.text_hash;
            });
        if (last != list->second.rend()) cost.before = *last;
    }
    return report;
}

} // namespace affinityd::accounting
