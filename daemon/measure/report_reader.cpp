// SPDX-License-Identifier: Apache-2.0
#include "measure/object_reader.hpp"
#include "measure/result.hpp"

#include <nlohmann/json.hpp>

namespace affinityd::measure {

namespace {

using nlohmann::json;

constexpr std::size_t longest_report = 1U << 20;
constexpr std::size_t most_entries = 1U << 16;
constexpr double most_seconds = 1e9;
constexpr double most_rate = 1e18, most_cost = 1e12;
constexpr unsigned most_cpu = (1U << 20) - 1;

EndReport read_end(const json& value, const char* name, std::string& fault) {
    EndReport end;
    ObjectReader reader(value, name, fault);
    reader.read("bytes", end.bytes);
    reader.read("calls", end.calls);
    reader.read("user_seconds", end.user_seconds, most_seconds);
    reader.read("system_seconds", end.system_seconds, most_seconds);
    reader.read("voluntary_switches", end.voluntary_switches);
    reader.read("involuntary_switches", end.involuntary_switches);
    reader.read("migrations", end.migrations);
    reader.read("retransmits", end.retransmits);
    reader.read("cycles", end.cycles);
    reader.read("instructions", end.instructions);
    reader.read("cache_misses", end.cache_misses);
    reader.finish();
    return end;
}

CpuReport read_cpu(const json& value, std::string& fault) {
    CpuReport cpu;
    ObjectReader reader(value, "cpus", fault);
    reader.read("cpu", cpu.cpu, most_cpu);
    reader.read("user_seconds", cpu.user_seconds, most_seconds);
    reader.read("system_seconds", cpu.system_seconds, most_seconds);
    reader.read("irq_seconds", cpu.irq_seconds, most_seconds);
    reader.read("softirq_seconds", cpu.softirq_seconds, most_seconds);
    reader.read("interrupts", cpu.interrupts);
    reader.finish();
    return cpu;
}

LineReport read_line(const json& value, std::string& fault) {
    LineReport line;
    ObjectReader reader(value, "lines", fault);
    reader.read("irq", line.irq);
    reader.read("label", line.label);
    reader.read("cpu", line.cpu, most_cpu);
    reader.read("count", line.count);
    reader.finish();
    return line;
}

template <class T>
std::vector<T> read_list(ObjectReader& reader, const char* key, std::string& fault,
                         T (*read_one)(const json&, std::string&)) {
    std::vector<T> list;
    const auto* member = reader.read_any(key);
    if (member == nullptr) return list;
    if (!member->is_array() || member->size() > most_entries) {
        reader.complain(key, "expected a list");
        return list;
    }
    for (const auto& entry : *member)
        list.push_back(read_one(entry, fault));
    return list;
}

/// What says which kind of document this is, and how the run ended.
void read_head(ObjectReader& reader, std::string& fault, Report& report) {
    unsigned version = 0;
    std::string kind, outcome;
    reader.read("version", version);
    if (fault.empty() && version != report_version) reader.complain("version", "not one this program knows");
    reader.read("kind", kind);
    if (fault.empty() && kind != "ttcp") reader.complain("kind", "expected \"ttcp\"");
    reader.read("outcome", outcome);
    const auto ended = parse_outcome(outcome);
    if (fault.empty() && !ended) reader.complain("outcome", "not one this program knows");
    report.outcome = ended.value_or(Outcome::failed);
    reader.read("reason", report.reason);
}

void read_setup(ObjectReader& reader, Setup& setup) {
    reader.read("path", setup.path);
    reader.read("touches_nic_interrupts", setup.touches_nic_interrupts);
    reader.read("streams", setup.streams);
    reader.read("buffer_bytes", setup.buffer_bytes);
}

} // namespace

Result<Report> parse_report(std::string_view text) {
    if (text.size() > longest_report) return fail("the measurement's report is too long");
    const json value = json::parse(text, nullptr, false);
    if (value.is_discarded()) return fail("the measurement's report is not JSON");
    std::string fault;
    Report report;
    ObjectReader reader(value, "", fault);
    read_head(reader, fault, report);
    read_setup(reader, report.setup);
    reader.read("seconds", report.seconds, most_seconds);
    reader.read("bytes", report.bytes);
    reader.read("bits_per_second", report.bits_per_second, most_rate);
    if (const auto* end = reader.read_any("transmitter"))
        report.transmitter = read_end(*end, "transmitter", fault);
    if (const auto* end = reader.read_any("receiver")) report.receiver = read_end(*end, "receiver", fault);
    reader.read("ghz_per_gbps", report.ghz_per_gbps, most_cost);
    reader.read("cycles_source", report.cycles_source);
    report.cpus = read_list(reader, "cpus", fault, read_cpu);
    report.lines = read_list(reader, "lines", fault, read_line);
    reader.finish();
    if (!fault.empty()) return fail(fault, "measurement report");
    return report;
}

} // namespace affinityd::measure
