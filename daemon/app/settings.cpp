// SPDX-License-Identifier: Apache-2.0
#include "app/settings.hpp"

#include "base/text.hpp"
#include "policy/tree.hpp"

#include <array>
#include <functional>
#include <optional>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

using policy::Node;
using std::chrono::seconds;

std::unexpected<Error> wrong(const std::string& path, const Node& node, const std::string& message) {
    return fail(message, fmt::format("{}:{}:{}", path, node.line, node.column));
}

/// "30", "30s", "5m", "2h", "1d".
std::optional<seconds> parse_duration(std::string_view text) {
    if (text.empty()) return std::nullopt;
    long long factor = 1;
    switch (text.back()) {
    case 's':
        break;
    case 'm':
        factor = 60;
        break;
    case 'h':
        factor = 3600;
        break;
    case 'd':
        factor = 86400;
        break;
    default:
        factor = 0;
        break;
    }
    if (factor == 0)
        factor = 1;
    else
        text.remove_suffix(1);
    const auto number = parse_number<long long>(text);
    if (!number || *number < 0 || *number > 86400) return std::nullopt;
    return seconds(*number * factor);
}

Result<void> take_duration(const std::string& path, const Node& node, seconds least, seconds most,
                           seconds& into) {
    const auto value = node.kind == Node::Kind::scalar ? parse_duration(node.text) : std::nullopt;
    if (!value || *value < least || *value > most)
        return wrong(
            path, node,
            fmt::format("expected a time from {} s to {} s, like 30s or 5m", least.count(), most.count()));
    into = *value;
    return {};
}

Result<void> take_target(const std::string& path, const Node& node, std::string& into) {
    const auto colon = node.text.rfind(':');
    const auto port = colon == std::string::npos
                          ? std::nullopt
                          : parse_number<std::uint16_t>(std::string_view(node.text).substr(colon + 1));
    if (node.kind != Node::Kind::scalar || colon == 0 || !port || *port == 0 || node.text.front() == '-')
        return wrong(path, node, "expected host:port");
    into = node.text;
    return {};
}

/// "500M", "10G": powers of 1000.
Result<void> take_bytes(const std::string& path, const Node& node, std::uint64_t& into) {
    std::string_view text = node.text;
    std::uint64_t factor = 1;
    for (const auto& [unit, value] : {std::pair{'K', 1'000ULL}, {'M', 1'000'000ULL}, {'G', 1'000'000'000ULL}})
        if (!text.empty() && text.back() == unit) factor = value;
    if (factor > 1) text.remove_suffix(1);
    const auto number = node.kind == Node::Kind::scalar ? parse_number<std::uint64_t>(text) : std::nullopt;
    if (!number || *number > 1'000'000'000'000'000ULL / factor)
        return wrong(path, node, "expected a number of bytes like 500M or 10G; 0: no limit");
    into = *number * factor;
    return {};
}

Result<void> take_percent(const std::string& path, const Node& node, unsigned& into) {
    std::string_view text = node.text;
    if (text.ends_with('%')) text.remove_suffix(1);
    const auto number = node.kind == Node::Kind::scalar ? parse_number<unsigned>(text) : std::nullopt;
    if (!number || *number < 1 || *number > 100) return wrong(path, node, "expected 1% to 100%");
    into = *number;
    return {};
}

Result<void> take_flag(const std::string& path, const Node& node, bool& into) {
    if (node.kind != Node::Kind::scalar || (node.text != "true" && node.text != "false"))
        return wrong(path, node, "expected true or false");
    into = node.text == "true";
    return {};
}

using Taker = std::function<Result<void>(const std::string& key, const Node& key_node, const Node& value)>;

Result<void> each_key(const std::string& path, const Node& map, const Taker& take) {
    if (map.kind != Node::Kind::map) return wrong(path, map, "expected keys with values");
    std::vector<std::string> seen;
    for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
        const Node& key = map.items[i];
        for (const auto& before : seen)
            if (before == key.text) return wrong(path, key, fmt::format("'{}' stands here twice", key.text));
        seen.push_back(key.text);
        Node value = map.items[i + 1];
        if (value.kind == Node::Kind::null) { // stands on the next line, where the fault is not
            value.line = key.line;
            value.column = key.column;
        }
        if (auto done = take(key.text, key, value); !done) return done;
    }
    return {};
}

} // namespace

Result<void> read_settings(const std::string& path, std::string_view text, Settings& settings) {
    const auto tree = policy::parse_tree(text);
    if (!tree)
        return fail(tree.error().message,
                    fmt::format("{}:{}:{}", path, tree.error().line, tree.error().column));
    if (tree->kind == Node::Kind::null) return {};
    constexpr seconds day{86400};
    const Taker measure = [&](const std::string& key, const Node& at, const Node& value) -> Result<void> {
        if (key == "interval")
            return take_duration(path, value, seconds(0), 30 * day, settings.measure.interval);
        if (key == "duration")
            return take_duration(path, value, seconds(1), seconds(60), settings.measure.duration);
        if (key == "target") return take_target(path, value, settings.measure.target);
        if (key == "random_delay")
            return take_duration(path, value, seconds(0), day, settings.measure.random_delay);
        if (key == "bytes") return take_bytes(path, value, settings.measure.bytes);
        if (key == "idle_only") return take_flag(path, value, settings.measure.idle_only);
        if (key == "busy_above") return take_percent(path, value, settings.measure.busy_above);
        return wrong(path, at,
                     fmt::format("unknown key '{}'; expected interval, random_delay, duration, bytes, "
                                 "target, idle_only or busy_above",
                                 key));
    };
    return each_key(
        path, *tree, [&](const std::string& key, const Node& at, const Node& value) -> Result<void> {
            if (key == "version")
                return value.text == "1" ? Result<void>{} : wrong(path, value, "expected version: 1");
            if (key == "reconcile")
                return take_duration(path, value, seconds(1), day, settings.reconcile_interval);
            if (key == "measure") return each_key(path, value, measure);
            return wrong(path, at,
                         fmt::format("unknown key '{}'; expected version, reconcile or measure", key));
        });
}

} // namespace affinityd::app
