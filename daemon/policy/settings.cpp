// SPDX-License-Identifier: Apache-2.0
#include "policy/settings.hpp"

#include "base/text.hpp"
#include "policy/fields.hpp"
#include "policy/report.hpp"
#include "policy/tree.hpp"

#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace affinityd::policy {

namespace {

using std::chrono::seconds;

// clang-format off
constexpr std::array top_keys{
    Key{Level::other, "version", Type::version, {}, "1", "", "1", "The version of this language."},
    Key{Level::other, "reconcile", Type::seconds, {}, "60s", "", "60s", "Interval between full passes.", 0, 1, 86400},
    Key{Level::other, "redeal", Type::described, {}, "60s", "a time from 10 s to 86400 s, like 60s or 5m, or 0", "60s", "Interval at which tasks may change places for a better balance; 0: never.", 0, 0, 86400},
    Key{Level::other, "auto", Type::described, {}, "", "a map of keys and values", "{round: 30s}", "The trials of policies with affinity: auto."},
    Key{Level::other, "measure", Type::described, {}, "", "a map of keys and values", "{target: 192.0.2.1:5001}", "The daemon's own measurements."},
};
constexpr std::array auto_keys{
    Key{Level::other, "round", Type::seconds, {}, "10s", "", "30s", "Time for which each way is tried before the next.", 0, 1, 600},
};
constexpr std::array measure_keys{
    Key{Level::other, "interval", Type::seconds, {}, "1d", "", "12h", "Time between runs; 0: only on demand.", 0, 0, 2592000},
    Key{Level::other, "random_delay", Type::seconds, {}, "0", "", "1h", "Longest random time that is added to each interval.", 0, 0, 86400},
    Key{Level::other, "duration", Type::seconds, {}, "2s", "", "5s", "Time of one run.", 0, 1, 60},
    Key{Level::other, "bytes", Type::described, {}, "0", "a number of bytes like 500M or 10G (0: no limit)", "10G", "The most that one run sends."},
    Key{Level::other, "target", Type::described, {}, "loopback", "host:port", "192.0.2.1:5001", "Where the sink listens."},
    Key{Level::other, "idle_only", Type::boolean, {}, "true", "", "false", "A run on a busy machine is skipped."},
    Key{Level::other, "busy_above", Type::described, {}, "20%", "a share from 1% to 100%", "20%", "Load above which the machine or the NIC counts as busy."},
};
// clang-format on

/// "500M", "10G": powers of 1000.
std::optional<std::uint64_t> parse_bytes(std::string_view text) {
    constexpr std::array<std::pair<char, std::uint64_t>, 3> units{
        {{'K', 1'000}, {'M', 1'000'000}, {'G', 1'000'000'000}}};
    std::uint64_t factor = 1;
    for (const auto& [unit, value] : units) {
        if (!text.ends_with(unit)) continue;
        factor = value;
        text.remove_suffix(1);
        break;
    }
    const auto number = parse_number<std::uint64_t>(text);
    if (!number || *number > 1'000'000'000'000'000ULL / factor) return std::nullopt;
    return *number * factor;
}

std::optional<unsigned> parse_percent(std::string_view text) {
    if (text.ends_with('%')) text.remove_suffix(1);
    const auto number = parse_number<unsigned>(text);
    return number && *number >= 1 && *number <= 100 ? number : std::nullopt;
}

/// "host:port"; nothing that a command line would take for an option.
std::optional<std::string> parse_target(std::string_view text) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || text.front() == '-') return std::nullopt;
    const auto port = parse_number<std::uint16_t>(text.substr(colon + 1));
    return port && *port > 0 ? std::optional(std::string(text)) : std::nullopt;
}

/// Sets `target` if the key is there and `parse` makes a value of it; reports it if not.
template <class Value, class Parse>
void set(const Fields& fields, std::string_view name, Value& target, Report& report, Parse parse) {
    const auto* entry = fields.find(name);
    if (entry == nullptr) return;
    const auto& node = *entry->value;
    const auto value = node.kind == Node::Kind::scalar ? parse(node.text) : std::nullopt;
    if (value)
        target = *value;
    else
        refuse_type(*entry, report);
}

void read_measure(const Entry& entry, Settings::Measure& measure, Report& report) {
    if (entry.value->kind != Node::Kind::map) return void(refuse_type(entry, report));
    const Fields fields(*entry.value, measure_keys, report);
    fields.read("interval", measure.interval);
    fields.read("random_delay", measure.random_delay);
    fields.read("duration", measure.duration);
    set(fields, "bytes", measure.bytes, report, parse_bytes);
    set(fields, "target", measure.target, report, parse_target);
    set(fields, "busy_above", measure.busy_above, report, parse_percent);
    fields.read("idle_only", measure.idle_only);
}

void read_top(const Node& tree, Settings& settings, Report& report) {
    const Fields fields(tree, top_keys, report);
    if (const auto* version = fields.find("version"); version != nullptr && version->value->text != "1")
        refuse_type(*version, report);
    fields.read("reconcile", settings.reconcile_interval);
    auto& redeal = settings.redeal_interval;
    if (fields.read("redeal", redeal) && redeal > seconds(0) && redeal < seconds(10))
        refuse_type(*fields.find("redeal"), report);
    if (const auto* entry = fields.find("auto"); entry != nullptr && entry->value->kind != Node::Kind::map)
        refuse_type(*entry, report);
    else if (entry != nullptr)
        Fields(*entry->value, auto_keys, report).read("round", settings.auto_round);
    if (const auto* measure = fields.find("measure")) read_measure(*measure, settings.measure, report);
}

} // namespace

std::vector<Diagnostic> check_settings(const std::string& path, std::string_view text, Settings* read) {
    std::vector<Diagnostic> found;
    Report report(path, text, found);
    Settings changed = read == nullptr ? Settings() : *read;
    if (const auto tree = report.read_root(true)) read_top(*tree, changed, report);
    if (found.empty() && read != nullptr) *read = std::move(changed);
    return found;
}

Result<void> read_settings(const std::string& path, std::string_view text, Settings& settings) {
    const auto found = check_settings(path, text, &settings);
    if (found.empty()) return {};
    const auto& first = found.front();
    return fail(first.hint.empty() ? first.message : first.message + " (" + first.hint + ")",
                fmt::format("{}:{}:{}", path, first.at.line, first.at.column));
}

} // namespace affinityd::policy
