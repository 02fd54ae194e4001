// SPDX-License-Identifier: Apache-2.0
#include "state/record.hpp"

#include "base/text.hpp"
#include "state/old_record.hpp"

#include <array>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

namespace affinityd::state {

namespace {

using machine::FlowTable;
using machine::IrqMask;
using machine::Setting;
using machine::SteeringMask;
using machine::Subject;
using machine::TaskMask;
using machine::UnitCpuset;
using planner::UndoRecord;

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

/// The first five fields of a line: the kind, and four that depend on it.
struct SubjectFields {
    std::string operator()(const TaskMask& mask) const {
        return fmt::format("task\t{}\t{}\t{}\t{}", mask.task.tid, mask.task.start_time, mask.pid,
                           escaped(mask.comm));
    }
    std::string operator()(const IrqMask& mask) const {
        return fmt::format("irq\t{}\t{}\t{}\t{}", escaped(mask.device), escaped(mask.label), mask.irq,
                           mask.ordinal);
    }
    std::string operator()(const SteeringMask& map) const {
        return fmt::format("steering\t{}\t{}\t{}-{}\t", escaped(map.device), escaped(map.nic),
                           map.direction == machine::Direction::rx ? "rx" : "tx", map.queue);
    }
    std::string operator()(const FlowTable& table) const {
        return fmt::format("flows\t{}\t{}\t{}\t", escaped(table.device), escaped(table.nic), table.queue);
    }
    std::string operator()(const UnitCpuset& cpuset) const {
        return fmt::format("unit\t{}\t\t\t", escaped(cpuset.unit));
    }
};

using Fields = std::vector<std::string_view>;

std::optional<Subject> parse_task(const Fields& fields) {
    const auto tid = parse_number<int>(fields[1]);
    const auto start = parse_number<std::uint64_t>(fields[2]);
    const auto pid = parse_number<int>(fields[3]);
    if (!tid || !start || !pid || *tid <= 0 || *pid <= 0) return std::nullopt;
    return TaskMask{{*tid, *start}, *pid, unescaped(fields[4])};
}

std::optional<Subject> parse_irq(const Fields& fields) {
    const auto number = parse_number<unsigned>(fields[3]);
    // Version 0.1 knew no ordinals, and left the field empty.
    const auto ordinal = fields[4].empty() ? std::optional(0U) : parse_number<unsigned>(fields[4]);
    if (!number || !ordinal) return std::nullopt;
    return IrqMask{unescaped(fields[1]), unescaped(fields[2]), *ordinal, *number};
}

std::optional<Subject> parse_steering(const Fields& fields) {
    const auto direction = fields[3].substr(0, 3);
    const auto queue = parse_number<unsigned>(fields[3].substr(direction.size()));
    if (!queue || (direction != "rx-" && direction != "tx-")) return std::nullopt;
    return SteeringMask{unescaped(fields[1]),
                        direction == "rx-" ? machine::Direction::rx : machine::Direction::tx, *queue,
                        unescaped(fields[2])};
}

std::optional<Subject> parse_flows(const Fields& fields) {
    const auto queue = parse_number<unsigned>(fields[3]);
    if (!queue) return std::nullopt;
    return FlowTable{unescaped(fields[1]), *queue, unescaped(fields[2])};
}

std::optional<Subject> parse_subject(const Fields& fields) {
    if (fields[0] == "task") return parse_task(fields);
    if (fields[0] == "irq") return parse_irq(fields);
    if (fields[0] == "steering") return parse_steering(fields);
    if (fields[0] == "flows") return parse_flows(fields);
    if (fields[0] == "unit") return UnitCpuset{unescaped(fields[1])};
    return std::nullopt;
}

std::optional<Setting> parse_setting(const Subject& subject, std::string_view text) {
    if (std::holds_alternative<FlowTable>(subject)) {
        const auto entries = parse_number<std::uint32_t>(text);
        return entries ? std::optional<Setting>(machine::FlowCount{*entries}) : std::nullopt;
    }
    auto cpus = CpuSet::parse_list(text);
    return cpus ? std::optional<Setting>(std::move(*cpus)) : std::nullopt;
}

} // namespace

std::string to_line(const Record& record) {
    std::string line = std::visit(SubjectFields{}, record.subject);
    if (record.undo)
        line += fmt::format("\theld\t{}\t{}\t{}\t{}", record.undo->original.to_string(),
                            record.undo->asked.to_string(), record.undo->granted.to_string(),
                            escaped(record.undo->policy));
    else
        line += "\tgone\t\t\t\t";
    return line + fmt::format("\t{:08x}\n", checksum(line));
}

std::optional<Record> parse_line(std::string_view line) {
    const auto last_tab = line.rfind('\t');
    if (last_tab == std::string_view::npos ||
        line.substr(last_tab + 1) != fmt::format("{:08x}", checksum(line.substr(0, last_tab))))
        return std::nullopt;
    auto fields = split(line.substr(0, last_tab), '\t');
    if (fields.size() != 10) return std::nullopt;
    std::array<std::string, 3> counts; // what fields of an old line point to
    renew_flow_fields(fields, counts);
    auto subject = parse_subject(fields);
    if (!subject) return std::nullopt;
    Record record{std::move(*subject), std::nullopt};
    if (fields[5] == "gone") return record;
    auto original = parse_setting(record.subject, fields[6]);
    auto asked = parse_setting(record.subject, fields[7]);
    auto granted = parse_setting(record.subject, fields[8]);
    if (fields[5] != "held" || !original || !asked || !granted) return std::nullopt;
    record.undo =
        UndoRecord{std::move(*original), std::move(*asked), std::move(*granted), unescaped(fields[9])};
    return record;
}

} // namespace affinityd::state
