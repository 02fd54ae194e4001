// SPDX-License-Identifier: Apache-2.0
#include "state/record.hpp"

#include "base/text.hpp"
#include "host/self.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace affinityd::state {

namespace {

constexpr std::string_view header_begin = "of boot ";

/// FNV-1a: finds a torn or mixed-up line; it guards against accidents, not against an attacker (the file is
/// root's).
std::uint32_t checksum(std::string_view text) {
    std::uint32_t sum = 2166136261U;
    for (const char c : text)
        sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
    return sum;
}

} // namespace

LineWriter& LineWriter::escaped(std::string_view field) {
    text_ += '\t';
    for (const char c : field) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == '%' || byte == 0x7f)
            fmt::format_to(std::back_inserter(text_), "%{:02x}", byte);
        else
            text_ += c;
    }
    return *this;
}

std::string LineWriter::finish() {
    fmt::format_to(std::back_inserter(text_), "\t{:08x}\n", checksum(text_));
    return std::move(text_);
}

std::string header() {
    const auto& boot = host::boot_id();
    return boot.empty() ? std::string() : LineWriter(std::string(header_begin).append(boot)).finish();
}

bool is_header(std::string_view line) { return line.starts_with(header_begin); }

FileBoot boot_of(std::string_view text) {
    if (text.empty() || host::boot_id().empty() || text.starts_with(header())) return FileBoot::ours;
    const auto fields = fields_of(text.substr(0, text.find('\n')));
    return fields.size() == 1 && is_header(fields[0]) ? FileBoot::another : FileBoot::damaged;
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

std::optional<CpuSet> parse_cpus(std::string_view field) {
    constexpr unsigned greatest = 8191; // of the kernels with most (NR_CPUS, arch/x86/Kconfig)
    auto cpus = CpuSet::parse_list(field);
    if (!cpus || (!cpus->empty() && cpus->last() > greatest)) return std::nullopt;
    return std::move(*cpus);
}

std::vector<std::string_view> fields_of(std::string_view line) {
    const auto last_tab = line.rfind('\t');
    if (last_tab == std::string_view::npos ||
        line.substr(last_tab + 1) != fmt::format("{:08x}", checksum(line.substr(0, last_tab))))
        return {};
    return split(line.substr(0, last_tab), '\t');
}

namespace {

using machine::FlowTable;
using machine::IrqMask;
using machine::KernelMask;
using machine::Setting;
using machine::SteeringMask;
using machine::Subject;
using machine::TaskMask;
using machine::UnitCpuset;

constexpr std::array<std::string_view, 2> kernel_masks{"interrupts", "work"};
constexpr std::array<std::string_view, 4> standings{"held", "kept", "back", "gone"};
constexpr std::string_view unknown = "none"; ///< in the place of a standing: the subject has no record
constexpr std::string_view no_setting = "-"; ///< in the place of `before`
constexpr std::size_t subject_fields = 5, first_term = subject_fields + 3;
constexpr std::size_t all_fields = first_term + 8, fields_before_earlier = all_fields - 1;
constexpr char between_masks = ';';

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
    LineWriter operator()(const KernelMask& mask) const {
        LineWriter line("kernel");
        line.plain(kernel_masks.at(static_cast<std::size_t>(mask.of))).plain("").plain("").plain("");
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

std::optional<Subject> parse_kernel(const Fields& fields) {
    const auto found = std::ranges::find(kernel_masks, fields[1]);
    if (found == kernel_masks.end()) return std::nullopt;
    return KernelMask{static_cast<KernelMask::Of>(found - kernel_masks.begin())};
}

std::optional<Subject> parse_subject(const Fields& fields) {
    if (fields[0] == "task") return parse_task(fields);
    if (fields[0] == "irq" || fields[0] == "line") return parse_irq(fields);
    if (fields[0] == "steering" || fields[0] == "port") return parse_steering(fields);
    if (fields[0] == "flows" || fields[0] == "port-flows") return parse_flows(fields);
    if (fields[0] == "unit") return UnitCpuset{unescaped(fields[1])};
    if (fields[0] == "kernel") return parse_kernel(fields);
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

std::shared_ptr<const Terms> parse_terms(const Subject& subject, std::span<const std::string_view> fields) {
    auto original = parse_setting(subject, fields[0]);
    auto asked = parse_setting(subject, fields[1]);
    auto granted = parse_setting(subject, fields[2]);
    const bool has_before = fields[3] != no_setting;
    auto before = has_before ? parse_setting(subject, fields[3]) : std::nullopt;
    const auto session = parse_number<int>(fields[6]);
    if (!original || !asked || !granted || has_before != before.has_value() || !session) return nullptr;
    std::vector<CpuSet> earlier;
    const auto list = fields.size() > 7 ? fields[7] : std::string_view();
    for (const auto text : list.empty() ? std::vector<std::string_view>{} : split(list, between_masks)) {
        auto mask = parse_cpus(text);
        if (!mask) return nullptr;
        earlier.push_back(std::move(*mask));
    }
    return std::make_shared<const Terms>(Terms{{std::move(*original), std::move(*asked), std::move(*granted),
                                                unescaped(fields[4]), std::move(before)},
                                               {unescaped(fields[5]), *session},
                                               std::move(earlier)});
}

/// The path says enough of the device's only interface; of one of several, the index is part of the identity;
/// of a virtual one, which has no path, it is all of it.
auto interface_of(const auto& queue) {
    const bool is_virtual = !queue.device.empty() && queue.device.find('/') == std::string::npos;
    const bool is_by_index = is_virtual && queue.ifindex != 0;
    return std::tuple(is_by_index ? std::string_view{} : std::string_view(queue.device),
                      is_by_index ? queue.ifindex : queue.port());
}

struct Compare {
    bool operator()(const TaskMask& a, const TaskMask& b) const {
        return std::tie(a.pid, a.task) < std::tie(b.pid, b.task);
    }
    bool operator()(const IrqMask& a, const IrqMask& b) const {
        if (a.is_line || b.is_line) return a.is_line == b.is_line ? a.irq < b.irq : b.is_line;
        return std::tie(a.device, a.label, a.ordinal) < std::tie(b.device, b.label, b.ordinal);
    }
    bool operator()(const SteeringMask& a, const SteeringMask& b) const {
        return std::tuple(interface_of(a), a.direction, a.queue) <
               std::tuple(interface_of(b), b.direction, b.queue);
    }
    bool operator()(const FlowTable& a, const FlowTable& b) const {
        return std::tuple(interface_of(a), a.queue) < std::tuple(interface_of(b), b.queue);
    }
    bool operator()(const UnitCpuset& a, const UnitCpuset& b) const { return a.unit < b.unit; }
    bool operator()(const KernelMask& a, const KernelMask& b) const { return a.of < b.of; }
    bool operator()(const auto&, const auto&) const { return false; }
};

} // namespace

bool SubjectOrder::operator()(const Subject& a, const Subject& b) const {
    return a.index() == b.index() ? std::visit(Compare{}, a, b) : a.index() < b.index();
}

bool Record::explains(const CpuSet& mask, const CpuSet& online, std::uint64_t born) const {
    if ((born > 0 && born < since) || (until > 0 && born > until)) return false;
    if (terms->undo.original == machine::Setting(mask)) return false;
    return std::ranges::any_of(masks_of(*terms),
                               [&](const CpuSet& ours) { return (ours & online) == (mask & online); });
}

std::vector<CpuSet> masks_of(const Terms& terms) {
    const auto& undo = terms.undo;
    auto masks = terms.earlier;
    for (const auto& ours : {undo.before.value_or(undo.original), undo.granted, undo.asked})
        if (ours != undo.original && std::ranges::find(masks, ours.cpus()) == masks.end())
            masks.push_back(ours.cpus());
    return masks;
}

std::string to_text(const Terms& terms) {
    const auto& undo = terms.undo;
    const auto asked = undo.asked.to_string();
    LineWriter line(undo.original.to_string());
    line.plain(asked).plain(undo.granted == undo.asked ? asked : undo.granted.to_string());
    line.plain(undo.before ? undo.before->to_string() : std::string(no_setting));
    line.escaped(undo.policy).escaped(terms.descent.group).number(terms.descent.session);
    std::string earlier;
    for (const auto& mask : terms.earlier)
        earlier += (earlier.empty() ? "" : std::string(1, between_masks)) + mask.to_list();
    return line.plain(earlier).text();
}

std::string to_line(const Subject& subject, const Record& record, std::string_view terms) {
    LineWriter line = std::visit(SubjectFields{}, subject);
    line.plain(record.terms ? standings.at(static_cast<std::size_t>(record.standing)) : unknown);
    line.number(record.since).number(record.until);
    return line.plain(record.terms ? terms : "\t\t\t\t\t\t\t").finish();
}

std::optional<Line> parse_line(std::string_view text) {
    const auto fields = fields_of(text);
    if (fields.size() != all_fields && fields.size() != fields_before_earlier) return std::nullopt;
    auto subject = parse_subject(fields);
    if (!subject) return std::nullopt;
    Line line{std::move(*subject), {}};
    const auto word = fields[subject_fields];
    if (word == unknown) return line;
    const auto standing = std::ranges::find(standings, word);
    const auto since = parse_number<std::uint64_t>(fields[subject_fields + 1]);
    const auto until = parse_number<std::uint64_t>(fields[subject_fields + 2]);
    auto terms = parse_terms(line.subject, std::span(fields).subspan(first_term));
    if (standing == standings.end() || !since || !until || !terms) return std::nullopt;
    line.record = {std::move(terms), static_cast<Standing>(standing - standings.begin()), *since, *until};
    return line;
}

} // namespace affinityd::state
