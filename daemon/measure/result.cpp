// SPDX-License-Identifier: Apache-2.0
#include "measure/result.hpp"

#include "measure/report_json.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <set>

namespace affinityd::measure {

using nlohmann::json;

namespace {

constexpr std::array<std::string_view, 8> outcomes{"done",      "skipped",   "unreachable", "peer_gone",
                                                   "link_lost", "timed_out", "killed",      "failed"};
constexpr std::size_t longest_report = 1U << 20;
constexpr std::size_t most_entries = 1U << 16;
constexpr std::size_t longest_text = 4096;
constexpr double most = 1e18; ///< seconds, bits per second, cost
constexpr unsigned most_cpu = (1U << 20) - 1;

template <class T, class Of>
concept Is = std::same_as<std::remove_const_t<T>, Of>;

// The members of each object: the writer writes these, the reader reads these and no others.

template <Is<EndReport> T>
void each_member(T& end, const auto& take) {
    take("bytes", end.bytes);
    take("calls", end.calls);
    take("user_seconds", end.user_seconds);
    take("system_seconds", end.system_seconds);
    take("voluntary_switches", end.voluntary_switches);
    take("involuntary_switches", end.involuntary_switches);
    take("migrations", end.migrations);
    take("retransmits", end.retransmits);
    take("cycles", end.cycles);
    take("instructions", end.instructions);
    take("cache_misses", end.cache_misses);
}

template <Is<CpuReport> T>
void each_member(T& cpu, const auto& take) {
    take("cpu", cpu.cpu);
    take("user_seconds", cpu.user_seconds);
    take("system_seconds", cpu.system_seconds);
    take("irq_seconds", cpu.irq_seconds);
    take("softirq_seconds", cpu.softirq_seconds);
    take("interrupts", cpu.interrupts);
}

template <Is<LineReport> T>
void each_member(T& line, const auto& take) {
    take("irq", line.irq);
    take("label", line.label);
    take("cpu", line.cpu);
    take("count", line.count);
}

/// But for "version", "kind" and "outcome".
template <Is<Report> T>
void each_member(T& report, const auto& take) {
    take("reason", report.reason);
    take("path", report.setup.path);
    take("touches_nic_interrupts", report.setup.touches_nic_interrupts);
    take("streams", report.setup.streams);
    take("buffer_bytes", report.setup.buffer_bytes);
    take("seconds", report.seconds);
    take("bytes", report.bytes);
    take("bits_per_second", report.bits_per_second);
    take("transmitter", report.transmitter);
    take("receiver", report.receiver);
    take("ghz_per_gbps", report.ghz_per_gbps);
    take("cycles_source", report.cycles_source);
    take("cpus", report.cpus);
    take("lines", report.lines);
}

template <class T>
json json_of(const T& value);

template <class T>
json json_of(const std::optional<T>& value) {
    return value ? json_of(*value) : json(nullptr);
}

template <class T>
json json_of(const std::vector<T>& values) {
    auto list = json::array();
    for (const auto& value : values)
        list.push_back(json_of(value));
    return list;
}

template <class T>
json json_of(const T& value) {
    if constexpr (requires { json(value); }) {
        return value;
    } else {
        json object;
        each_member(value, [&](const char* key, const auto& member) { object[key] = json_of(member); });
        return object;
    }
}

/// Reads the members of one object from another process, each exactly once, and keeps the first fault.
class ObjectReader {
  public:
    ObjectReader(const json& object, std::string name, std::string& fault)
        : object_(object), name_(std::move(name)), fault_(fault) {
        if (!object.is_object()) complain("", "expected an object");
    }
    void finish() {
        if (!fault_.empty()) return;
        for (const auto& [key, member] : object_.items())
            if (!read_.contains(key)) complain(key, "unknown key");
    }
    template <class T>
    void operator()(const char* key, T& out) {
        if (!fault_.empty()) return;
        const auto at = object_.find(key);
        if (at == object_.end()) return complain(key, "missing");
        read_.insert(key);
        take(key, *at, out);
    }
    void complain(std::string_view key, std::string_view what) {
        if (!fault_.empty()) return;
        fault_ = name_ + (name_.empty() || key.empty() ? "" : ".");
        fault_.append(key.substr(0, 64)).append(fault_.empty() ? "" : ": ").append(what);
    }

  private:
    void take(const char* key, const json& value, std::string& out) {
        const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
        const auto* text = value.get_ptr<const std::string*>();
        if (text == nullptr || text->size() > longest_text) return complain(key, "expected a short text");
        if (std::ranges::any_of(*text, is_control)) return complain(key, "holds control characters");
        out = *text;
    }
    void take(const char* key, const json& value, bool& out) {
        if (!value.is_boolean()) return complain(key, "expected true or false");
        out = value.get<bool>();
    }
    void take(const char* key, const json& value, double& out) {
        const double number = value.is_number() ? value.get<double>() : NAN;
        if (!std::isfinite(number) || number < 0 || number > most)
            return complain(key, "expected a number that is not negative");
        out = number;
    }
    template <std::unsigned_integral T>
    void take(const char* key, const json& value, T& out) {
        const auto limit = std::string_view(key) == "cpu" ? most_cpu : std::numeric_limits<T>::max();
        if (!value.is_number_unsigned() || value.get<std::uint64_t>() > limit)
            return complain(key, "expected a whole number in range");
        out = value.get<T>();
    }
    template <class T>
    void take(const char* key, const json& value, std::optional<T>& out) {
        if (!value.is_null()) take(key, value, out.emplace());
    }
    template <class T>
    void take(const char* key, const json& value, std::vector<T>& out) {
        if (!value.is_array() || value.size() > most_entries) return complain(key, "expected a list");
        for (const auto& entry : value)
            take(key, entry, out.emplace_back());
    }
    template <class T>
    requires std::is_aggregate_v<T>
    void take(const char* key, const json& value, T& out) {
        ObjectReader reader(value, key, fault_);
        each_member(out, [&](const char* name, auto& member) { reader(name, member); });
        reader.finish();
    }

    const json& object_;
    std::string name_;
    std::string& fault_; ///< nothing is read after one
    std::set<std::string, std::less<>> read_;
};

} // namespace

std::string_view to_string(Outcome outcome) { return outcomes[static_cast<std::size_t>(outcome)]; }

std::optional<Outcome> parse_outcome(std::string_view text) {
    const auto at = std::ranges::find(outcomes, text);
    if (at == outcomes.end()) return std::nullopt;
    return static_cast<Outcome>(at - outcomes.begin());
}

json to_json(const std::vector<CpuReport>& cpus) { return json_of(cpus); }

json to_json(const std::vector<LineReport>& lines) { return json_of(lines); }

std::string to_json(const Report& report) {
    auto value = json_of(report);
    value.update({{"version", report_version}, {"kind", "ttcp"}, {"outcome", to_string(report.outcome)}});
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Report> parse_report(std::string_view text) {
    if (text.size() > longest_report) return fail("the measurement's report is too long");
    const json value = json::parse(text, nullptr, false);
    if (value.is_discarded()) return fail("the measurement's report is not JSON");
    std::string fault;
    Report report;
    ObjectReader reader(value, "", fault);
    unsigned version = 0;
    std::string kind, outcome;
    reader("version", version);
    if (version != report_version) reader.complain("version", "not one this program knows");
    reader("kind", kind);
    if (kind != "ttcp") reader.complain("kind", "expected \"ttcp\"");
    reader("outcome", outcome);
    const auto ended = parse_outcome(outcome);
    if (!ended) reader.complain("outcome", "not one this program knows");
    report.outcome = ended.value_or(Outcome::failed);
    each_member(report, [&](const char* key, auto& member) { reader(key, member); });
    reader.finish();
    if (!fault.empty()) return fail(fault, "measurement report");
    return report;
}

} // namespace affinityd::measure
