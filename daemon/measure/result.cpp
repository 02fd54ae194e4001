// SPDX-License-Identifier: Apache-2.0
#include "measure/result.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace affinityd::measure {

namespace {

using nlohmann::json;

constexpr int version = 1;
constexpr std::size_t most_text = 1U << 20;
constexpr std::size_t most_entries = 1U << 16;
constexpr double most_seconds = 1e9;
constexpr std::array<std::string_view, 8> outcomes{"done",      "skipped",   "unreachable", "peer_gone",
                                                   "link_lost", "timed_out", "killed",      "failed"};

/// Takes the members of one JSON object, each exactly once, and remembers the first fault.
class Taker {
  public:
    Taker(const json& value, std::string name, std::string& fault)
        : value_(value), name_(std::move(name)), fault_(fault) {
        if (!value.is_object()) complain("", "expected an object");
    }
    /// Call last: members nobody asked for are a fault.
    void finish() {
        if (!fault_.empty()) return;
        for (const auto& [key, member] : value_.items())
            if (!taken_.contains(key)) complain(key, "unknown key");
    }
    void take(const char* key, std::string& out) {
        const auto* member = find(key);
        if (member == nullptr) return;
        const auto* text = member->get_ptr<const std::string*>();
        if (text == nullptr || text->size() > 4096) return complain(key, "expected a short text");
        const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
        if (std::any_of(text->begin(), text->end(), is_control))
            return complain(key, "holds control characters");
        out = *text;
    }
    void take(const char* key, bool& out) {
        const auto* member = find(key);
        if (member == nullptr) return;
        if (!member->is_boolean()) return complain(key, "expected true or false");
        out = member->get<bool>();
    }
    void take(const char* key, double& out, double most) {
        const auto* member = find(key);
        if (member == nullptr) return;
        const double number = member->is_number() ? member->get<double>() : NAN;
        if (!std::isfinite(number) || number < 0 || number > most)
            return complain(key, "expected a number that is not negative");
        out = number;
    }
    template <std::unsigned_integral T>
    void take(const char* key, T& out, std::uint64_t most = std::numeric_limits<T>::max()) {
        const auto* member = find(key);
        if (member == nullptr) return;
        if (!member->is_number_unsigned() || member->get<std::uint64_t>() > most)
            return complain(key, "expected a whole number in range");
        out = static_cast<T>(member->get<std::uint64_t>());
    }
    void take(const char* key, std::optional<std::uint64_t>& out) {
        if (is_null(key)) return;
        out.emplace();
        take(key, *out);
    }
    void take(const char* key, std::optional<double>& out, double most) {
        if (is_null(key)) return;
        out.emplace();
        take(key, *out, most);
    }
    /// The member for the caller to go into; nothing if it is null or at fault.
    const json* take_any(const char* key) { return is_null(key) ? nullptr : find(key); }
    void complain(std::string_view key, const char* what) {
        if (!fault_.empty()) return;
        fault_ = name_;
        if (!key.empty()) fault_ += (name_.empty() ? "" : ".") + std::string(key.substr(0, 64));
        fault_ += fault_.empty() ? what : std::string(": ") + what;
    }

  private:
    const json* find(const char* key) {
        if (!fault_.empty()) return nullptr;
        const auto at = value_.find(key);
        if (at == value_.end()) {
            complain(key, "missing");
            return nullptr;
        }
        taken_.insert(key);
        return &*at;
    }
    bool is_null(const char* key) {
        const auto* member = find(key);
        return member == nullptr || member->is_null();
    }

    const json& value_;
    std::string name_;
    std::string& fault_;
    std::set<std::string, std::less<>> taken_;
};

template <class T>
json or_null(const std::optional<T>& value) {
    return value ? json(*value) : json(nullptr);
}

json end_json(const std::optional<EndReport>& end) {
    if (!end) return nullptr;
    return {{"bytes", end->bytes},
            {"calls", end->calls},
            {"user_seconds", end->user_seconds},
            {"system_seconds", end->system_seconds},
            {"voluntary_switches", end->voluntary_switches},
            {"involuntary_switches", end->involuntary_switches},
            {"migrations", or_null(end->migrations)},
            {"retransmits", or_null(end->retransmits)},
            {"cycles", or_null(end->cycles)},
            {"instructions", or_null(end->instructions)},
            {"cache_misses", or_null(end->cache_misses)}};
}

EndReport take_end(const json& value, const char* name, std::string& fault) {
    EndReport end;
    Taker taker(value, name, fault);
    taker.take("bytes", end.bytes);
    taker.take("calls", end.calls);
    taker.take("user_seconds", end.user_seconds, most_seconds);
    taker.take("system_seconds", end.system_seconds, most_seconds);
    taker.take("voluntary_switches", end.voluntary_switches);
    taker.take("involuntary_switches", end.involuntary_switches);
    taker.take("migrations", end.migrations);
    taker.take("retransmits", end.retransmits);
    taker.take("cycles", end.cycles);
    taker.take("instructions", end.instructions);
    taker.take("cache_misses", end.cache_misses);
    taker.finish();
    return end;
}

CpuReport take_cpu(const json& value, std::string& fault) {
    CpuReport cpu;
    Taker taker(value, "cpus", fault);
    taker.take("cpu", cpu.cpu, (1U << 20) - 1);
    taker.take("user_seconds", cpu.user_seconds, most_seconds);
    taker.take("system_seconds", cpu.system_seconds, most_seconds);
    taker.take("irq_seconds", cpu.irq_seconds, most_seconds);
    taker.take("softirq_seconds", cpu.softirq_seconds, most_seconds);
    taker.take("interrupts", cpu.interrupts);
    taker.finish();
    return cpu;
}

LineReport take_line(const json& value, std::string& fault) {
    LineReport line;
    Taker taker(value, "lines", fault);
    taker.take("irq", line.irq);
    taker.take("label", line.label);
    taker.take("cpu", line.cpu, (1U << 20) - 1);
    taker.take("count", line.count);
    taker.finish();
    return line;
}

template <class T>
std::vector<T> take_list(Taker& taker, const char* key, std::string& fault,
                         T (*take_one)(const json&, std::string&)) {
    std::vector<T> list;
    const auto* member = taker.take_any(key);
    if (member == nullptr) return list;
    if (!member->is_array() || member->size() > most_entries) {
        taker.complain(key, "expected a list");
        return list;
    }
    for (const auto& entry : *member)
        list.push_back(take_one(entry, fault));
    return list;
}

} // namespace

std::string_view to_string(Outcome outcome) { return outcomes[static_cast<std::size_t>(outcome)]; }

std::optional<Outcome> parse_outcome(std::string_view text) {
    const auto at = std::find(outcomes.begin(), outcomes.end(), text);
    if (at == outcomes.end()) return std::nullopt;
    return static_cast<Outcome>(at - outcomes.begin());
}

std::string to_json(const Report& report) {
    json cpus = json::array();
    for (const auto& cpu : report.cpus)
        cpus.push_back({{"cpu", cpu.cpu},
                        {"user_seconds", cpu.user_seconds},
                        {"system_seconds", cpu.system_seconds},
                        {"irq_seconds", cpu.irq_seconds},
                        {"softirq_seconds", cpu.softirq_seconds},
                        {"interrupts", cpu.interrupts}});
    json lines = json::array();
    for (const auto& line : report.lines)
        lines.push_back({{"irq", line.irq}, {"label", line.label}, {"cpu", line.cpu}, {"count", line.count}});
    const json value{{"version", version},
                     {"kind", "ttcp"},
                     {"outcome", to_string(report.outcome)},
                     {"reason", report.reason},
                     {"path", report.path},
                     {"touches_nic_interrupts", report.touches_nic_interrupts},
                     {"streams", report.streams},
                     {"buffer_bytes", report.buffer_bytes},
                     {"seconds", report.seconds},
                     {"bytes", report.bytes},
                     {"bits_per_second", report.bits_per_second},
                     {"transmitter", end_json(report.transmitter)},
                     {"receiver", end_json(report.receiver)},
                     {"ghz_per_gbps", or_null(report.ghz_per_gbps)},
                     {"cycles_source", report.cycles_source},
                     {"cpus", std::move(cpus)},
                     {"lines", std::move(lines)}};
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Report> parse_report(std::string_view text) {
    if (text.size() > most_text) return fail("the measurement's report is too long");
    const json value = json::parse(text, nullptr, false);
    if (value.is_discarded()) return fail("the measurement's report is not JSON");
    std::string fault;
    Report report;
    Taker taker(value, "", fault);
    unsigned given = 0;
    std::string kind, outcome;
    taker.take("version", given);
    if (fault.empty() && given != version) taker.complain("version", "not one this program knows");
    taker.take("kind", kind);
    if (fault.empty() && kind != "ttcp") taker.complain("kind", "expected \"ttcp\"");
    taker.take("outcome", outcome);
    const auto ended = parse_outcome(outcome);
    if (fault.empty() && !ended) taker.complain("outcome", "not one this program knows");
    report.outcome = ended.value_or(Outcome::failed);
    taker.take("reason", report.reason);
    taker.take("path", report.path);
    taker.take("touches_nic_interrupts", report.touches_nic_interrupts);
    taker.take("streams", report.streams);
    taker.take("buffer_bytes", report.buffer_bytes);
    taker.take("seconds", report.seconds, most_seconds);
    taker.take("bytes", report.bytes);
    taker.take("bits_per_second", report.bits_per_second, 1e18);
    if (const auto* end = taker.take_any("transmitter"))
        report.transmitter = take_end(*end, "transmitter", fault);
    if (const auto* end = taker.take_any("receiver")) report.receiver = take_end(*end, "receiver", fault);
    taker.take("ghz_per_gbps", report.ghz_per_gbps, 1e12);
    taker.take("cycles_source", report.cycles_source);
    report.cpus = take_list(taker, "cpus", fault, take_cpu);
    report.lines = take_list(taker, "lines", fault, take_line);
    taker.finish();
    if (!fault.empty()) return fail(fault, "measurement report");
    return report;
}

} // namespace affinityd::measure
