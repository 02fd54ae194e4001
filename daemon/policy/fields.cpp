// SPDX-License-Identifier: Apache-2.0
#include "policy/fields.hpp"

#include "base/text.hpp"
#include "policy/suggest.hpp"

#include <algorithm>
#include <array>

namespace affinityd::policy {

namespace {

constexpr std::string_view measured = "measured"; ///< in place of an expression after `near`

std::string name_of(const Fields::Entry& entry) { return "'" + std::string(entry.key->name) + "'"; }

std::string kind_of(const Node& node) {
    switch (node.kind) {
    case Node::Kind::list:
        return "a list";
    case Node::Kind::map:
        return "a map";
    case Node::Kind::null:
        return "nothing";
    case Node::Kind::scalar:
        break;
    }
    return (node.plain ? "" : "the text ") + in_quotes(node.text);
}

bool takes_list(Type type) {
    return type == Type::patterns || type == Type::nics || type == Type::policies || type == Type::ports;
}

/// YAML joins a text over several lines in ways that nobody sees ("a b", or a line end at its end).
bool is_one_line(const Node& node, const Fields::Entry& entry, Report& report) {
    if (node.one_line) return true;
    report.error(node, "the value of " + name_of(entry) + " runs over more than one line",
                 "is a '-' or a key missing in the next line?");
    return false;
}

bool is_scalar(const Fields::Entry& entry, Report& report) {
    if (entry.value->kind == Node::Kind::scalar)
        return entry.key->type == Type::text || is_one_line(*entry.value, entry, report);
    report_wrong_type(entry, report);
    return false;
}

/// Decimal without sign tricks: "010" is eight to one YAML reader and ten to another.
template <std::integral T>
std::optional<T> strict_number(std::string_view text) {
    const auto digits = text.starts_with('-') ? text.substr(1) : text;
    if (digits.size() > 1 && digits.starts_with('0')) return std::nullopt;
    return parse_number<T>(text);
}

template <std::unsigned_integral T>
std::optional<std::pair<T, T>> parse_range(std::string_view text) {
    const auto dash = text.find('-');
    const auto first = strict_number<T>(text.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : strict_number<T>(text.substr(dash + 1));
    if (!first || !last) return std::nullopt;
    return std::pair(*first, *last);
}

} // namespace

void report_wrong_type(const Fields::Entry& entry, Report& report, std::string hint) {
    report.error(*entry.value,
                 name_of(entry) + " must be " + type_name(*entry.key) + ", not " + kind_of(*entry.value),
                 std::move(hint));
}

Fields::Fields(const Node& map, Level level, Report& report) {
    read(
        map, [=](std::string_view name) { return find_key(level, name); },
        [=](std::string_view name) { return advise_key(level, name); }, report);
}

Fields::Fields(const Node& map, std::span<const Key> keys, Report& report) {
    read(
        map,
        [=](std::string_view name) {
            const auto found = std::ranges::find(keys, name, &Key::name);
            return found == keys.end() ? nullptr : &*found;
        },
        [=](std::string_view name) {
            std::vector<std::string_view> names;
            for (const auto& key : keys)
                names.push_back(key.name);
            auto advice = did_you_mean(name, names);
            return advice.empty() ? "expected " + either(names) : advice;
        },
        report);
}

void Fields::read(const Node& map, const Find& find_key, const Advise& advise, Report& report) {
    for (std::size_t at = 0; at + 1 < map.items.size() && !report.is_full(); at += 2) {
        const Node& name = map.items[at];
        const Node& value = map.items[at + 1];
        const Key* key = find_key(name.text);
        if (key == nullptr) {
            report.error(name, "unknown key " + in_quotes(name.text), advise(name.text));
            continue;
        }
        const auto earlier = std::ranges::find(entries_, key, &Entry::key);
        if (earlier != entries_.end()) {
            report.error(name, "duplicate key " + in_quotes(name.text),
                         "first in line " + std::to_string(earlier->name->line) +
                             (takes_list(key->type) ? "; write several as a list" : ""));
            continue;
        }
        if (value.kind == Node::Kind::null)
            report.error(name, "'" + name.text + "' has no value",
                         "it takes " + type_name(*key) + ", for instance " + std::string(key->example));
        entries_.push_back({key, &name, &value});
    }
    std::erase_if(entries_, [](const Entry& entry) { return entry.value->kind == Node::Kind::null; });
}

const Fields::Entry* Fields::find(std::string_view name) const {
    const auto found =
        std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.key->name == name; });
    return found == entries_.end() ? nullptr : &*found;
}

std::optional<bool> read_boolean(const Fields::Entry& entry, Report& report) {
    if (!is_scalar(entry, report)) return std::nullopt;
    const auto& text = entry.value->text;
    if (entry.value->plain && text == "true") return true;
    if (entry.value->plain && text == "false") return false;
    static constexpr std::array<std::string_view, 7> yes{"yes", "Yes", "on", "On", "1", "True", "TRUE"};
    static constexpr std::array<std::string_view, 7> no{"no", "No", "off", "Off", "0", "False", "FALSE"};
    std::string hint;
    if (std::ranges::find(yes, text) != yes.end() || text == "true") hint = "write true, without quotes";
    if (std::ranges::find(no, text) != no.end() || text == "false") hint = "write false, without quotes";
    report_wrong_type(entry, report, hint);
    return std::nullopt;
}

std::optional<int> read_integer(const Fields::Entry& entry, int low, int high, Report& report) {
    if (!is_scalar(entry, report)) return std::nullopt;
    const auto number = strict_number<int>(entry.value->text);
    if (number && entry.value->plain && low <= *number && *number <= high) return number;
    report_wrong_type(entry, report, !entry.value->plain && number ? "write it without quotes" : "");
    return std::nullopt;
}

std::optional<std::string> read_text(const Fields::Entry& entry, Report& report) {
    if (!is_scalar(entry, report)) return std::nullopt;
    if (entry.value->text.size() <= 4096) return entry.value->text;
    report.error(*entry.value, name_of(entry) + " is longer than 4096 bytes");
    return std::nullopt;
}

std::optional<std::size_t> read_choice(const Fields::Entry& entry, Report& report) {
    if (!is_scalar(entry, report)) return std::nullopt;
    const auto& values = entry.key->values;
    const auto found = std::ranges::find(values, std::string_view(entry.value->text));
    if (found != values.end()) return static_cast<std::size_t>(found - values.begin());
    report_wrong_type(entry, report, did_you_mean(entry.value->text, values));
    return std::nullopt;
}

std::optional<CpuExpr> read_cpus(const Fields::Entry& entry, Report& report) {
    const Node& value = *entry.value;
    if (value.kind == Node::Kind::list) {
        report_wrong_type(entry, report, "write CPUs as one text: \"0-3,8\"");
        return std::nullopt;
    }
    if (!is_scalar(entry, report)) return std::nullopt;
    auto expr = parse_cpu_expr(value.text);
    if (expr) return std::move(*expr);
    report.error_inside(value, expr.error().offset, expr.error().length,
                        name_of(entry) + ": " + expr.error().message, expr.error().hint);
    return std::nullopt;
}

std::optional<std::chrono::milliseconds> read_duration(const Fields::Entry& entry, Report& report) {
    constexpr std::chrono::minutes most{1};
    if (!is_scalar(entry, report)) return std::nullopt;
    const auto time = parse_duration(entry.value->text);
    if (time && *time <= most) return time;
    report_wrong_type(entry, report);
    return std::nullopt;
}

std::optional<std::pair<unsigned, unsigned>> read_index(const Fields::Entry& entry, Report& report) {
    if (!is_scalar(entry, report)) return std::nullopt;
    const auto range = parse_range<unsigned>(entry.value->text);
    if (!range) {
        report_wrong_type(entry, report);
        return std::nullopt;
    }
    if (range->first <= range->second) return range;
    report.error(*entry.value, name_of(entry) + ": the range runs backwards");
    return std::nullopt;
}

Ports read_ports(const Fields::Entry& entry, Report& report) {
    Ports ports;
    for (const Node* element : read_list(entry, report)) {
        const auto range = parse_range<std::uint16_t>(element->text);
        if (!range || range->first == 0) {
            const bool several = element->text.find_first_of(", ") != std::string::npos;
            report.error(*element, in_quotes(element->text) + " is no port",
                         several ? "write several as a list: [80, 443]"
                                 : "a number from 1 to 65535, or a range like 8000-8099");
        } else if (range->first > range->second) {
            report.error(*element, "the range " + in_quotes(element->text) + " runs backwards");
        } else {
            ports.push_back(*range);
        }
    }
    return ports;
}

std::vector<const Node*> read_list(const Fields::Entry& entry, Report& report) {
    const Node& value = *entry.value;
    if (value.kind == Node::Kind::map) {
        report_wrong_type(entry, report);
        return {};
    }
    std::vector<const Node*> elements;
    if (value.kind == Node::Kind::scalar && is_one_line(value, entry, report)) elements.push_back(&value);
    if (value.kind == Node::Kind::list && value.items.empty())
        report.error(value, "the list of " + name_of(entry) + " is empty");
    for (std::size_t at = 0; value.kind == Node::Kind::list && at < value.items.size(); ++at) {
        const Node& element = value.items[at];
        if (element.kind == Node::Kind::scalar) {
            if (is_one_line(element, entry, report)) elements.push_back(&element);
        } else if (element.kind == Node::Kind::null)
            report.error(*entry.name,
                         "element " + std::to_string(at + 1) + " of " + name_of(entry) + " is empty");
        else
            report.error(element,
                         "an element of " + name_of(entry) + " must be a text, not " + kind_of(element));
    }
    for (std::size_t at = 1; at < elements.size() && elements.size() <= 1000; ++at) {
        const auto end = elements.begin() + static_cast<std::ptrdiff_t>(at);
        const auto same = [&](const Node* other) { return other->text == elements[at]->text; };
        if (std::any_of(elements.begin(), end, same))
            report.warn(*elements[at], in_quotes(elements[at]->text) + " is in the list twice");
    }
    return elements;
}

std::vector<Pattern> read_patterns(const Fields::Entry& entry, Report& report) {
    std::vector<Pattern> patterns;
    for (const Node* element : read_list(entry, report)) {
        auto pattern = report.patterns().parse(element->text);
        if (pattern)
            patterns.push_back(std::move(*pattern));
        else
            report.error(*element, name_of(entry) + ": " + pattern.error().message);
    }
    return patterns;
}

void check_name(const Pattern& pattern, std::string_view what, const Node& at, Report& report) {
    const auto& text = pattern.text();
    if (!pattern.is_too_long() || text.starts_with("kworker/"))
        return; // the kernel makes these when they are read
    const std::string limit = "a " + std::string(what) + " name has at most 15 bytes: " + in_quotes(text);
    if (pattern.kept().empty())
        report.warn(at, limit + " matches nothing", "shorten what is around '*'");
    else
        report.warn(at, limit + " stands for what the kernel keeps of it",
                    "write " + in_quotes(pattern.kept()));
}

void read_placement(const Fields& fields, Placement& placement, Report& report) {
    if (const auto* entry = fields.find("cpus")) {
        if (auto expr = read_cpus(*entry, report)) placement.cpus = std::move(*expr);
        placement.cpus_at = report.text_at(*entry->value);
    }
    if (const auto* entry = fields.find("near")) {
        placement.near.reset();
        placement.near_measured = entry->value->kind == Node::Kind::scalar && entry->value->text == measured;
        if (!placement.near_measured)
            if (auto expr = read_cpus(*entry, report)) placement.near = std::move(*expr);
        placement.near_at = report.text_at(*entry->value);
    }
    placement.has_spread = set_word(fields, "spread", placement.spread, report) || placement.has_spread;
    placement.has_bind = set_word(fields, "bind", placement.bind, report) || placement.has_bind;
    set_word(fields, "smt", placement.smt, report);
}

void place_singly(Placement& placement) {
    if (!placement.has_spread) placement.spread = Spread::cpu;
    if (!placement.has_bind) placement.bind = Bind::cpu;
}

} // namespace affinityd::policy
