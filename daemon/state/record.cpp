// SPDX-License-Identifier: Apache-2.0
#include "state/record.hpp"

#include "base/text.hpp"
#include "state/journal_line.hpp"

#include <cstdint>
#include <utility>

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

// What a line says of its subject's record.
constexpr std::string_view held = "held";
constexpr std::string_view moved =
    "moved"; // and the last setting is what it was before, not what was granted
constexpr std::string_view kept = "kept";
constexpr std::string_view put_back = "back";
constexpr std::string_view gone = "gone";

/// Begins a line: the kind, and four fields that depend on it.
struct SubjectFields {
    LineWriter operator()(const TaskMask& mask) const {
        LineWriter line("task");
        line.number(mask.task.tid).number(mask.task.start_time).number(mask.pid).escaped(mask.comm);
        return line;
    }
    LineWriter operator()(const IrqMask& mask) const {
        LineWriter line(mask.is_line ? "line" : "irq");
        line.escaped(mask.device).escaped(mask.label).number(mask.irq).number(mask.ordinal);
        return line;
    }
    LineWriter operator()(const SteeringMask& map) const {
        LineWriter line(map.is_port ? "port" : "steering");
        const char* direction = map.direction == machine::Direction::rx ? "rx" : "tx";
        line.escaped(map.device).escaped(map.nic).plain(fmt::format("{}-{}", direction, map.queue));
        line.number(map.ifindex);
        return line;
    }
    LineWriter operator()(const FlowTable& table) const {
        LineWriter line(table.is_port ? "port-flows" : "flows");
        line.escaped(table.device).escaped(table.nic).number(table.queue).number(table.ifindex);
        return line;
    }
    LineWriter operator()(const UnitCpuset& cpuset) const {
        LineWriter line("unit");
        line.escaped(cpuset.unit).plain("").plain("").plain("");
        return line;
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
    const auto ordinal = parse_number<unsigned>(fields[4]);
    if (!number || !ordinal) return std::nullopt;
    return IrqMask{unescaped(fields[1]), unescaped(fields[2]), *ordinal, *number, fields[0] == "line"};
}

std::optional<Subject> parse_steering(const Fields& fields) {
    const auto direction = fields[3].substr(0, 3);
    const auto queue = parse_number<unsigned>(fields[3].substr(direction.size()));
    const auto ifindex = parse_number<unsigned>(fields[4]);
    if (!queue || !ifindex || (direction != "rx-" && direction != "tx-")) return std::nullopt;
    return SteeringMask{unescaped(fields[1]),
                        direction == "rx-" ? machine::Direction::rx : machine::Direction::tx,
                        *queue,
                        unescaped(fields[2]),
                        *ifindex,
                        fields[0] == "port"};
}

std::optional<Subject> parse_flows(const Fields& fields) {
    const auto queue = parse_number<unsigned>(fields[3]);
    const auto ifindex = parse_number<unsigned>(fields[4]);
    if (!queue || !ifindex) return std::nullopt;
    return FlowTable{unescaped(fields[1]), *queue, unescaped(fields[2]), *ifindex, fields[0] == "port-flows"};
}

std::optional<Subject> parse_subject(const Fields& fields) {
    if (fields[0] == "task") return parse_task(fields);
    if (fields[0] == "irq" || fields[0] == "line") return parse_irq(fields);
    if (fields[0] == "steering" || fields[0] == "port") return parse_steering(fields);
    if (fields[0] == "flows" || fields[0] == "port-flows") return parse_flows(fields);
    if (fields[0] == "unit") return UnitCpuset{unescaped(fields[1])};
    return std::nullopt;
}

std::optional<Setting> parse_setting(const Subject& subject, std::string_view text) {
    if (std::holds_alternative<FlowTable>(subject)) {
        const auto entries = parse_number<std::uint32_t>(text);
        return entries ? std::optional<Setting>(machine::FlowCount{*entries}) : std::nullopt;
    }
    auto cpus = parse_cpus(text);
    if (!cpus) return std::nullopt;
    return std::move(*cpus);
}

/// "back", or with a time "back 4711".
std::string standing_of(std::string_view word, std::uint64_t ticks) {
    return ticks == 0 ? std::string(word) : fmt::format("{} {}", word, ticks);
}

std::string line_of(const Subject& subject, const std::string& standing, const UndoRecord& record,
                    const Setting& third) {
    LineWriter line = std::visit(SubjectFields{}, subject);
    const auto asked = record.asked.to_string();
    line.plain(standing).plain(record.original.to_string()).plain(asked);
    line.plain(third == record.asked ? asked : third.to_string());
    return line.escaped(record.policy).finish();
}

struct Identity {
    std::string operator()(const TaskMask& mask) const {
        return fmt::format("task\t{}\t{}", mask.task.tid, mask.task.start_time);
    }
    std::string operator()(const IrqMask& mask) const {
        if (mask.is_line) return fmt::format("line\t{}", mask.irq);
        return fmt::format("irq\t{}\t{}\t{}", mask.device, mask.label, mask.ordinal);
    }
    std::string operator()(const SteeringMask& map) const {
        const char direction = map.direction == machine::Direction::rx ? 'r' : 't';
        return fmt::format("steering\t{}\t{}\t{}", map.device, direction, map.queue) + port(map);
    }
    std::string operator()(const FlowTable& table) const {
        return fmt::format("flows\t{}\t{}", table.device, table.queue) + port(table);
    }
    static std::string port(const auto& queue) {
        return queue.port() == 0 ? "" : fmt::format("\t#{}", queue.port());
    }
    std::string operator()(const UnitCpuset& cpuset) const { return "unit\t" + cpuset.unit; }
};

} // namespace

std::string to_line(const Subject& subject, const UndoRecord* undo, std::uint64_t since) {
    if (undo != nullptr)
        return line_of(subject, standing_of(undo->before ? moved : held, since), *undo,
                       undo->before ? *undo->before : undo->granted);
    LineWriter line = std::visit(SubjectFields{}, subject);
    return line.plain(gone).plain("").plain("").plain("").plain("").finish();
}

std::string to_line(const Subject& subject, const UndoRecord* last, Parting parting, std::uint64_t until) {
    return line_of(subject, standing_of(parting == Parting::kept ? kept : put_back, until), *last,
                   last->granted);
}

std::string identity_of(const Subject& subject) { return std::visit(Identity{}, subject); }

std::optional<Record> parse_line(std::string_view line) {
    const auto fields = fields_of(line);
    if (fields.size() != 10) return std::nullopt;
    auto subject = parse_subject(fields);
    if (!subject) return std::nullopt;
    Record record{std::move(*subject), std::nullopt};
    const auto standing = fields[5].substr(0, fields[5].find(' '));
    if (standing == gone) return record;
    auto original = parse_setting(record.subject, fields[6]);
    auto asked = parse_setting(record.subject, fields[7]);
    auto granted = parse_setting(record.subject, fields[8]);
    if (!original || !asked || !granted) return std::nullopt;
    UndoRecord undo{std::move(*original), std::move(*asked), std::move(*granted), unescaped(fields[9])};
    if (standing == moved) undo.before = std::exchange(undo.granted, undo.asked);
    if (standing == held || standing == moved)
        record.undo = std::move(undo);
    else if (standing == kept || standing == put_back)
        record.past = {std::move(undo), standing == kept ? Parting::kept : Parting::put_back};
    else
        return std::nullopt;
    if (standing.size() == fields[5].size()) return record;
    const auto ticks = parse_number<std::uint64_t>(fields[5].substr(standing.size() + 1));
    if (!ticks) return std::nullopt;
    record.since_or_until = *ticks;
    return record;
}

} // namespace affinityd::state
