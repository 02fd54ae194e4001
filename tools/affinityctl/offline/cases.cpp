// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/cases.hpp"

#include "affinityctl/present/document.hpp"
#include "policy/fields.hpp"
#include "policy/report.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include <fmt/format.h>

namespace affinityctl {

namespace {

namespace policy = affinityd::policy;
using nlohmann::json;
using policy::CpuExpr;
using policy::Entry;
using policy::Key;
using policy::Node;
using policy::Pattern;
using policy::Ports;
using policy::Report;
using policy::Severity;
using policy::Type;

constexpr Key case_key(std::string_view name, Type type, std::string_view example,
                       std::string_view takes = "", int low = 0) {
    return {policy::Level::other, name, type, {}, "", takes, example, "", 0, low, 65535};
}
constexpr auto maps = "a list of maps", texts = "a text or a list of texts";
// clang-format off
constexpr Key root_key = case_key("root", Type::text, "web1"),
              policies_key = case_key("policies", Type::described, "[nginx.yaml]", texts),
              processes_key = case_key("processes", Type::described, "[{comm: nginx}]", maps),
              thread_key = case_key("threads", Type::integer, "8", "", 1);
constexpr std::array file_keys{
    case_key("version", Type::version, "1"), root_key, policies_key, processes_key,
    case_key("tests", Type::described, "[{name: idle}]", maps)};
constexpr std::array test_keys{
    case_key("name", Type::text, "each worker has a core"), root_key, policies_key, processes_key,
    case_key("expect", Type::described, "[{process: nginx, cpus: \"0-3\"}]", maps),
    case_key("problems", Type::patterns, "\"*no queue*\"")};
constexpr std::array process_keys{
    case_key("comm", Type::text, "nginx"), case_key("exe", Type::text, "/usr/sbin/nginx"),
    case_key("cmdline", Type::text, "\"nginx: worker process\""), case_key("unit", Type::text, "nginx.service"),
    case_key("cgroup", Type::text, "/kubepods.slice/web"), case_key("pod", Type::text, "web-1"),
    case_key("namespace", Type::text, "shop"), case_key("user", Type::text, "www-data"),
    case_key("group", Type::text, "www-data"), case_key("cpuset", Type::text, "0-3"),
    case_key("count", Type::integer, "4", "", 1), case_key("listen", Type::ports, "443"),
    case_key("threads", Type::described, "{worker: 8}", "a map of names and numbers"),
    case_key("nics", Type::described, "eth0", texts)};
constexpr std::array expect_keys{
    case_key("process", Type::patterns, "nginx"), case_key("thread", Type::patterns, "worker"),
    case_key("nic", Type::text, "eth0"), case_key("queue", Type::integer, "0"),
    case_key("irq", Type::patterns, "\"nvme*\""), case_key("policy", Type::text, "nginx"),
    case_key("cpus", Type::cpus, "\"0-3\""), case_key("within", Type::cpus, "node:0")};
// clang-format on

constexpr std::int64_t most_made_tasks = 10'000; ///< whose files are made up
constexpr std::size_t longest_made_name = 200;   ///< of a unit or group, in bytes

json read_map(const Node& map, std::span<const Key> keys, Report& report);

json read_maps(const Entry& entry, std::span<const Key> keys, Report& report) {
    json found = json::array();
    if (entry.value->kind != Node::Kind::list) {
        policy::refuse_type(entry, report);
        return found;
    }
    for (const auto& item : entry.value->items)
        if (item.kind == Node::Kind::map)
            found.push_back(read_map(item, keys, report));
        else
            report.error(item, fmt::format("an element of '{}' must be a map", entry.key->name));
    return found;
}

template <class Value>
Value read_one(const Entry& entry, Report& report) {
    Value value{};
    policy::read_value(entry, value, report);
    return value;
}

/// "threads": names, each with a number.
json read_numbers(const Entry& entry, Report& report) {
    json found = json::object();
    const auto& items = entry.value->items;
    if (entry.value->kind != Node::Kind::map) policy::refuse_type(entry, report);
    for (std::size_t at = 0; entry.value->kind == Node::Kind::map && at < items.size(); at += 2)
        found[items[at].text] = read_one<int>({&thread_key, &items[at], &items[at + 1]}, report);
    return found;
}

/// An expression or a list of these, in their canonical form.
json read_cpus(const Entry& entry, Report& report) {
    json found = json::array();
    const auto add = [&](const Node& node) {
        std::optional<CpuExpr> expr;
        if (policy::read_value({entry.key, entry.name, &node}, expr, report))
            found.push_back(to_string(*expr));
    };
    if (entry.value->kind == Node::Kind::list)
        std::ranges::for_each(entry.value->items, add);
    else
        add(*entry.value);
    return found;
}

json read_described(const Entry& entry, Report& report) {
    const auto name = entry.key->name;
    if (name == "tests") return read_maps(entry, test_keys, report);
    if (name == "processes") return read_maps(entry, process_keys, report);
    if (name == "expect") return read_maps(entry, expect_keys, report);
    if (name == "threads") return read_numbers(entry, report);
    json found = json::array();
    for (const auto* node : policy::read_list(entry, report))
        found.push_back(node->text);
    return found;
}

json read_any(const Entry& entry, Report& report) {
    json found = json::array();
    switch (entry.key->type) {
    case Type::text:
        return read_one<std::string>(entry, report);
    case Type::integer:
        return read_one<int>(entry, report);
    case Type::cpus:
        return read_cpus(entry, report);
    case Type::described:
        return read_described(entry, report);
    case Type::patterns:
        for (const auto& pattern : read_one<std::vector<Pattern>>(entry, report))
            found.push_back(pattern.text());
        return found;
    case Type::ports:
        for (const auto& range : read_one<Ports>(entry, report))
            found.push_back(range.first);
        return found;
    default: // the version
        if (entry.value->text != "1") policy::refuse_type(entry, report);
        return found;
    }
}

json read_map(const Node& map, std::span<const Key> keys, Report& report) {
    json found{{"line", map.line}, {"column", map.column}};
    const policy::Fields fields(map, keys, report);
    for (const auto& entry : fields.entries())
        found[std::string(entry.key->name)] = read_any(entry, report);
    return found;
}

/// The rules of maps that their keys alone do not say.
void check(const json& one, Report& report) {
    const auto has = [&](const json& map, const char* key) { return map.contains(key) ? 1 : 0; };
    const auto refuse = [&](const json& map, const std::string& message) {
        report.add(Severity::error, map["line"], map["column"], 1, message);
    };
    for (const char* key : {"name", "root", "policies"})
        if (!has(one, key)) refuse(one, fmt::format("'{}' is missing", key));
    for (const auto& made : list(one, "processes"))
        if (text(made, "comm").empty() || !affinityd::CpuSet::parse_list(text(made, "cpuset")))
            refuse(made, "a process has a name, 'comm', and its 'cpuset' is a list like 0-3,8");
    std::int64_t tasks = 0;
    for (const auto& made : list(one, "processes")) {
        const auto group = text(made, "cgroup"), unit = text(made, "unit");
        if ((!group.empty() && !group.starts_with('/')) || group.find("..") != std::string::npos ||
            unit.find('/') != std::string::npos || std::max(group.size(), unit.size()) > longest_made_name)
            refuse(made, "'cgroup' is a path like /kubepods.slice/web, and 'unit' a name");
        if (has(made, "namespace") && !has(made, "pod")) refuse(made, "a 'namespace' is that of a 'pod'");
        if (has(made, "exe") && !text(made, "exe").starts_with('/'))
            refuse(made, "'exe' is an absolute path");
        std::int64_t threads = 1;
        for (const auto& number : member(made, "threads"))
            threads += number.get<std::int64_t>();
        tasks += made.value("count", std::int64_t{1}) * threads;
    }
    if (tasks > most_made_tasks) refuse(one, fmt::format("a test has at most {} threads", most_made_tasks));
    for (const auto& expected : list(one, "expect")) {
        if (has(expected, "process") + has(expected, "nic") + has(expected, "irq") != 1)
            refuse(expected, "an expectation is about a 'process', a 'nic' or an 'irq'");
        for (const char* key : {"cpus", "within"})
            if (has(expected, key) && expected[key].empty())
                refuse(expected, fmt::format("'{}' is empty", key));
        if (const int cpus = has(expected, "cpus") + has(expected, "within");
            cpus + has(expected, "policy") == 0 || cpus == 2)
            refuse(expected, "an expectation has 'cpus' or 'within', or a 'policy', or both");
    }
}

} // namespace

json read_cases(const std::string& path, std::string_view text, const std::string& root,
                std::vector<policy::Diagnostic>& found) {
    Report report(path, text, found);
    const auto tree = report.read_root(false);
    json cases = json::array();
    if (!tree) return cases;
    auto common = read_map(*tree, file_keys, report);
    const auto tests = list(common, "tests");
    if (tests.empty() && report.errors() == 0) report.error(*tree, "the file has no tests");
    common.erase("tests");
    const auto folder = std::filesystem::path(path).parent_path();
    for (const auto& test : tests) {
        auto& one = cases.emplace_back(common);
        one.update(test);
        if (!root.empty()) one["root"] = root;
        check(one, report);
        one["file"] = path;
        one["root"] = (folder / affinityctl::text(one, "root")).string();
        for (auto& policy : one["policies"])
            policy = (folder / policy.get<std::string>()).string();
    }
    return cases;
}

} // namespace affinityctl
