// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "behaviours/list.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace affinityd::behaviours {

namespace {

using status::Interruptions;
using Time = std::chrono::steady_clock::time_point;

constexpr std::chrono::hours longest{1};
constexpr std::chrono::seconds between_readings{5}, between_samples{60};

/// Counts of /proc/interrupts by CPU and kind. Source: arch/x86/kernel/irq.c, arch/arm64/kernel/smp.c.
class Table {
  public:
    using Counts = std::map<unsigned, Interruptions::Counts>;
    void take(std::string_view line);
    [[nodiscard]] Counts finish() { return std::move(counts_); }

  private:
    std::vector<unsigned> columns_; ///< their CPUs
    Counts counts_;
};

Interruptions::Kind kind_of(std::string_view key, std::string_view line) {
    using Kind = Interruptions::Kind;
    constexpr std::array calls{"RES", "CAL", "TLB"};
    if (key == "LOC" || line.ends_with("arch_timer")) return Kind::timer;
    if (is_digit(key.front())) return Kind::device;
    const bool is_call = key.starts_with("IPI") || std::ranges::find(calls, key) != calls.end();
    return is_call ? Kind::call : Kind::other;
}

void Table::take(std::string_view line) {
    line = trim_text(line);
    const auto colon = line.find(':');
    if (colon == 0 || line.empty()) return;
    auto rest = colon == std::string_view::npos ? line : line.substr(colon + 1);
    const auto next = [&] {
        rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
        const auto word = rest.substr(0, rest.find(' '));
        rest.remove_prefix(word.size());
        return word;
    };
    if (colon == std::string_view::npos) { // the head
        for (auto word = next(); word.starts_with("CPU"); word = next())
            if (const auto cpu = parse_number<unsigned>(word.substr(3))) columns_.push_back(*cpu);
        return;
    }
    const auto kind = static_cast<std::size_t>(kind_of(line.substr(0, colon), line));
    std::vector<std::uint64_t> found;
    for (auto count = parse_number<std::uint64_t>(next()); count && found.size() < columns_.size();
         count = parse_number<std::uint64_t>(next()))
        found.push_back(*count);
    if (found.size() < columns_.size()) return; // ERR and MIS are of no CPU
    for (std::size_t i = 0; i < found.size(); ++i)
        counts_[columns_[i]].at(kind) += found[i];
}

/// Counts what interrupted the CPUs that policies have for themselves, by the kernel's own counters.
class Isolation final : public Behaviour {
  public:
    explicit Isolation(Shared& shared) : shared_(shared) {}
    Slices end_pass() override;
    void report(status::Overview& into) const override;

  private:
    struct Sample {
        Time at;
        Table::Counts counts;
    };
    void note_claims(Time now);
    [[nodiscard]] std::optional<Interruptions> of(const planner::Claim& claim) const;

    Shared& shared_;
    struct Claimed {
        CpuSet cpus;
        Time since; ///< when the claim was first seen
    };
    std::map<std::string, Claimed, std::less<>> claimed_; ///< by policy
    std::deque<Sample> samples_; ///< a minute apart, but for the last, which is the latest
};

void Isolation::note_claims(Time now) {
    const auto& claims = shared_.current.placements().claims;
    std::erase_if(claimed_, [&](const auto& entry) {
        return std::ranges::none_of(claims, [&](const planner::Claim& claim) {
            return claim.policy == entry.first && claim.cpus == entry.second.cpus;
        });
    });
    for (const auto& claim : claims)
        claimed_.try_emplace(claim.policy, claim.cpus, now);
}

Slices Isolation::end_pass() {
    const auto now = Clock::now();
    note_claims(now);
    if (claimed_.empty()) samples_.clear();
    if (claimed_.empty() || (!samples_.empty() && now - samples_.back().at < between_readings)) co_return;
    const auto file = shared_.root.proc().open_file("interrupts", O_RDONLY | O_CLOEXEC);
    if (!file) co_return;
    Table table;
    std::string text;
    std::array<char, 4096> part{};
    for (auto got = ::read(file->get(), part.data(), part.size()); got > 0;
         got = ::read(file->get(), part.data(), part.size())) {
        text.append(part.data(), static_cast<std::size_t>(got));
        for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
            table.take(std::string_view(text).substr(0, end));
            text.erase(0, end + 1);
        }
        co_yield pause;
    }
    if (samples_.size() > 1 && samples_.back().at - samples_[samples_.size() - 2].at < between_samples)
        samples_.pop_back();
    samples_.push_back({now, table.finish()});
    while (samples_.size() > 1 && now - samples_[1].at >= longest)
        samples_.pop_front();
}

std::optional<Interruptions> Isolation::of(const planner::Claim& claim) const {
    const auto claimed = claimed_.find(claim.policy);
    if (claimed == claimed_.end()) return std::nullopt;
    const auto first = std::ranges::find_if(
        samples_, [&](const Sample& sample) { return sample.at >= claimed->second.since; });
    if (first == samples_.end() || &*first == &samples_.back()) return std::nullopt;
    const auto& last = samples_.back();
    Interruptions sum{std::chrono::duration_cast<std::chrono::seconds>(last.at - first->at), {}};
    for (const auto& [cpu, counts] : last.counts) {
        const auto before = first->counts.find(cpu);
        if (!claim.cpus.contains(cpu) || before == first->counts.end()) continue;
        for (std::size_t kind = 0; kind < counts.size(); ++kind)
            sum.counts.at(kind) += counts.at(kind) - std::min(counts.at(kind), before->second.at(kind));
    }
    return sum;
}

void Isolation::report(status::Overview& into) const {
    for (const auto& claim : shared_.current.placements().claims) {
        const auto policy = std::ranges::find(into.policies, claim.policy, &status::PolicyStatus::name);
        if (policy != into.policies.end()) policy->interruptions = of(claim);
    }
}

} // namespace

void add_isolation(Daemon& daemon, const Bus&) { daemon.add(std::make_unique<Isolation>(daemon.shared())); }

} // namespace affinityd::behaviours
