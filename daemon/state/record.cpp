// SPDX-License-Identifier: Apache-2.0
#include "state/record.hpp"

#include "base/text.hpp"

#include <charconv>
#include <cstdint>

#include <fmt/format.h>

namespace affinityd::state {

namespace {

using planner::Held;
using planner::IrqMask;
using planner::SteeringMask;
using planner::Subject;
using planner::TaskMask;
using planner::UnitCpuset;

/// FNV-1a: finds a torn or mixed-up line; it guards against accidents, not against an attacker (the file is
/// root's).
std::uint32_t checksum(std::string_view text) {
    std::uint32_t sum = 2166136261U;
    for (const char c : text)
        sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
    return sum;
}

/// Tabs, line ends and other control bytes as %XX, and the percent sign itself.
std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == '%' || byte == 0x7f)
            result += fmt::format("%{:02x}", byte);
        else
            result += c;
    }
    return result;
}

std::string unescaped(std::string_view text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned byte = 0;
        if (text[i] == '%' && i + 2 < text.size() &&
            std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ec == std::errc{}) {
            result += static_cast<char>(byte);
            i += 2;
        } else {
            result += text[i];
        }
    }
    return result;
}

struct Fields {
    std::string operator()(const TaskMask& mask) const {
        return fmt::format("task\t{}\t{}\t{}\t{}", mask.task.tid, mask.task.start_time, mask.pid,
                           escaped(mask.comm));
    }
    std::string operator()(const IrqMask& mask) const {
        return fmt::format("irq\t{}\t{}\t{}\t", escaped(mask.device), escaped(mask.label), mask.irq);
    }
    std::string operator()(const SteeringMask& mask) const {
        return fmt::format("steering\t{}\t{}\t{}\t", escaped(mask.device), escaped(mask.nic), mask.queue);
    }
    std::string operator()(const UnitCpuset& cpuset) const {
        return fmt::format("unit\t{}\t\t\t", escaped(cpuset.unit));
    }
};

std::optional<Subject> parse_subject(const std::vector<std::string_view>& fields) {
    if (fields[0] == "task") {
        const auto tid = parse_number<int>(fields[1]);
        const auto start = parse_number<std::uint64_t>(fields[2]);
        const auto pid = parse_number<int>(fields[3]);
        if (!tid || !start || !pid) return std::nullopt;
        return TaskMask{{*tid, *start}, *pid, unescaped(fields[4])};
    }
    if (fields[0] == "irq") {
        const auto number = parse_number<unsigned>(fields[3]);
        if (!number) return std::nullopt;
        return IrqMask{unescaped(fields[1]), unescaped(fields[2]), *number};
    }
    if (fields[0] == "steering")
        return SteeringMask{unescaped(fields[1]), unescaped(fields[2]), std::string(fields[3])};
    if (fields[0] == "unit") return UnitCpuset{unescaped(fields[1])};
    return std::nullopt;
}

} // namespace

std::string queue_key(const Subject& subject) {
    if (const auto* irq = std::get_if<IrqMask>(&subject)) return "irq\t" + irq->device + '\t' + irq->label;
    if (const auto* steering = std::get_if<SteeringMask>(&subject))
        return "steering\t" + steering->device + '\t' + steering->queue;
    if (const auto* cpuset = std::get_if<UnitCpuset>(&subject)) return "unit\t" + cpuset->unit;
    return {};
}

std::string to_line(const Record& record) {
    std::string line = std::visit(Fields{}, record.subject);
    if (record.held)
        line += fmt::format("\theld\t{}\t{}\t{}\t{}", record.held->original.to_list(),
                            record.held->asked.to_list(), record.held->granted.to_list(),
                            escaped(record.held->policy));
    else
        line += "\tgone\t\t\t\t";
    return line + fmt::format("\t{:08x}\n", checksum(line));
}

std::optional<Record> parse_line(std::string_view line) {
    const auto last_tab = line.rfind('\t');
    if (last_tab == std::string_view::npos ||
        line.substr(last_tab + 1) != fmt::format("{:08x}", checksum(line.substr(0, last_tab))))
        return std::nullopt;
    const auto fields = split(line.substr(0, last_tab), '\t');
    if (fields.size() != 10) return std::nullopt;
    auto subject = parse_subject(fields);
    if (!subject) return std::nullopt;
    Record record{std::move(*subject), std::nullopt};
    if (fields[5] == "gone") return record;
    const auto original = CpuSet::parse_list(fields[6]);
    const auto asked = CpuSet::parse_list(fields[7]);
    const auto granted = CpuSet::parse_list(fields[8]);
    if (fields[5] != "held" || !original || !asked || !granted) return std::nullopt;
    record.held = Held{*original, *asked, *granted, unescaped(fields[9])};
    return record;
}

} // namespace affinityd::state
