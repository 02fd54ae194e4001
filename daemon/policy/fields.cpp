// SPDX-License-Identifier: Apache-2.0
#include "policy/fields.hpp"

#include "base/text.hpp"
#include "policy/diagnostic.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <functional>
#include <iterator>
#include <set>

#include <fmt/format.h>

namespace affinityd::policy {

namespace {

using V = std::string_view;
constexpr std::array<V, 5> models{"none", "irq", "process", "full", "auto"};
constexpr std::array<V, 6> spreads{"any", "cpu", "core", "llc", "node", "socket"};
constexpr std::array<V, 5> binds{"cpu", "core", "llc", "node", "set"};
constexpr std::array<V, 3> smts{"share", "avoid", "pair"};
constexpr std::array<V, 6> togethers{"none", "core", "llc", "node", "socket", "measured"};
constexpr std::array<V, 3> drifts{"enforce", "once", "yield"};
constexpr std::array<V, 2> priors{"replace", "keep"};
constexpr std::array<V, 2> stops{"restore", "keep"};
constexpr std::array<V, 2> ways{"affinity", "cpuset"};
constexpr std::array<V, 5> steers{"none", "auto", "accept", "tasks", "flows"};
constexpr std::array<V, 3> memories{"stay", "follow", "interleave"};
constexpr std::array<V, 3> exclusives{"false", "true", "always"};

constexpr unsigned bit(Model model) { return 1U << static_cast<unsigned>(model); }
constexpr unsigned in_none = bit(Model::none);
constexpr unsigned of_tasks = in_none | bit(Model::irq);      ///< only tasks are concerned
constexpr unsigned of_queues = in_none | bit(Model::process); ///< only interrupts are concerned
constexpr unsigned of_lanes = of_tasks | bit(Model::process); ///< both together are

// clang-format off
constexpr std::array key_table{
    Key{Level::top, "version", Type::version, {}, "1, with a warning", "", "1", "The file states the version of its language; files of version 1 keep their meaning."},
    Key{Level::top, "description", Type::text, {}, "empty", "", "nginx workers on the cores of the NIC", "This text stands in the answers of affinityctl."},
    Key{Level::top, "priority", Type::integer, {}, "0", "", "10", "The daemon asks policies with a higher number first.", 0, -100'000, 100'000},
    Key{Level::top, "default", Type::boolean, {}, "false", "", "true", "The policy takes the tasks that no other policy wants; the daemon asks it last, whatever its priority."},
    Key{Level::top, "match", Type::conditions, {}, "required, except with default: true, or affinity: irq and named nics or irqs", "", "{comm: redis-server}", "The policy takes the processes that meet all of these conditions."},
    Key{Level::top, "affinity", Type::choice, models, "process", "", "full", "The policy places nothing (none), the interrupts of the NICs (irq), the tasks (process), or each task with the interrupts that serve it (full); auto tries which of these costs least."},
    Key{Level::top, "nics", Type::nics, {}, "auto", "", "[eth0, \"enp65s0f*\"]", "The interrupts of these NICs belong to the policy; auto means the NICs whose addresses the matched sockets use.", in_none},
    Key{Level::top, "irqs", Type::patterns, {}, "none", "", "[ttyS0, \"reo2host-*\"]", "The daemon deals these other interrupts, by handler (/proc/interrupts) or PCI function, out over the cores of cpus.", in_none},
    Key{Level::top, "rps", Type::cpus, {}, "the seats of readers that have no queue", "CPU set", "4-7", "Each receive queue hands its packets on to these CPUs (RPS).", of_queues},
    Key{Level::top, "cpus", Type::cpus, {}, "every online CPU that is not isolated", "CPU set", "nic & !smt", "The policy may use these CPUs.", in_none},
    Key{Level::top, "near", Type::near, {}, "nothing", "CPU set", "nic:eth0", "The daemon takes the CPUs of cpus nearest to these first; measured means near the policy's other tasks, room where a node has memory for the process.", in_none},
    Key{Level::top, "spread", Type::choice, spreads, "any", "", "core", "The daemon deals tasks out, one after the other, over the groups of this level.", of_tasks},
    Key{Level::top, "bind", Type::choice, binds, "llc", "", "core", "The daemon gives each task a mask of this width around its place; set means all of cpus.", of_tasks},
    Key{Level::top, "smt", Type::choice, smts, "share", "", "avoid", "Tasks share cores (share), use only the first CPU in the set of each core (avoid), or have one core for two that are numbered as siblings (pair).", in_none},
    Key{Level::top, "together", Type::choice, togethers, "none", "", "llc", "The daemon keeps all threads of one process inside one group of this level.", of_tasks},
    Key{Level::top, "threads", Type::rules, {}, "every thread as the policy says", "", "[{name: \"io*\", cpus: \"0\"}]", "The first of these rules that fits a thread places it.", of_tasks},
    Key{Level::top, "allow_join", Type::slots, {}, "none", "", "arrivals", "Threads of these processes may join these slots through libaffinity(3).", of_tasks},
    Key{Level::top, "exclusive", Type::choice, exclusives, "false", "", "true", "The daemon keeps every other task off these CPUs while a program of the policy runs (true), or at all times (always).", of_tasks},
    Key{Level::top, "isolate", Type::boolean, {}, "false", "", "true", "The daemon also keeps interrupts, kernel threads and their work off these CPUs, as far as they can be moved; exclusive is true then.", of_tasks},
    Key{Level::top, "separate", Type::boolean, {}, "false", "", "true", "The daemon keeps interrupts off the worker's core, but in its cache group.", of_queues},
    Key{Level::top, "steering", Type::boolean, {}, "true", "", "false", "The daemon sets XPS, RPS and RFS along with the interrupts of the NICs.", of_queues},
    Key{Level::top, "steer", Type::choice, steers, "auto", "", "accept", "The daemon brings connections to the worker on whose lane their packets arrive.", of_lanes},
    Key{Level::top, "drift", Type::choice, drifts, "enforce", "", "once", "The daemon reacts like this when another program changes a mask that the policy has set.", of_tasks},
    Key{Level::top, "prior", Type::choice, priors, "replace", "", "keep", "The daemon replaces a mask that a task had before, or keeps it and leaves the task alone.", of_tasks},
    Key{Level::top, "on_stop", Type::choice, stops, "restore", "", "keep", "The daemon restores or keeps masks when it stops or the policy is removed."},
    Key{Level::top, "means", Type::choice, ways, "affinity", "", "cpuset", "The daemon places tasks by their affinity masks alone, or by the cpuset of their unit, too.", in_none},
    Key{Level::top, "settle", Type::duration, {}, "2s", "time", "500ms", "A new process may use all of cpus for this time, so that it counts them right, before it gets its own place.", of_tasks},
    Key{Level::top, "memory", Type::choice, memories, "stay", "", "follow", "The daemon leaves a process's memory where it is, moves it to the nodes of its CPUs (follow), or spreads it over these (interleave).", of_tasks},

    Key{Level::match, "comm", Type::patterns, {}, "any", "", "redis-server", "The process (its main thread) has this name, at most 15 bytes."},
    Key{Level::match, "exe", Type::patterns, {}, "any", "", "/usr/sbin/nginx", "The process runs the program file at this path."},
    Key{Level::match, "cmdline", Type::patterns, {}, "any", "", "\"*worker process*\"", "The process has these arguments, joined by one space."},
    Key{Level::match, "unit", Type::patterns, {}, "any", "", "nginx.service", "The process belongs to this systemd unit, or to a slice around it."},
    Key{Level::match, "cgroup", Type::patterns, {}, "any", "", "/system.slice/*", "The process is in the control group of this path."},
    Key{Level::match, "user", Type::patterns, {}, "any", "", "postgres", "The process has this effective user, by name, or by number where it has none."},
    Key{Level::match, "group", Type::patterns, {}, "any", "", "www-data", "The process has this effective group, by name, or by number where it has none."},
    Key{Level::match, "container", Type::patterns, {}, "any", "", "\"3f4a9c*\"", "The process is in this container, by id or name as the control group's path has it."},
    Key{Level::match, "pod", Type::patterns, {}, "any", "", "\"web-*\"", "The process is in a container of this pod of Kubernetes."},
    Key{Level::match, "namespace", Type::patterns, {}, "any", "", "shop", "The process is in a container of a pod of this namespace of Kubernetes."},
    Key{Level::match, "parent", Type::policies, {}, "any", "", "nginx", "The process descends from one that the named policy matches."},
    Key{Level::match, "listen", Type::ports, {}, "any", "port", "[80, 443, \"8000-8099\"]", "The process listens on one of these TCP or UDP ports."},
    Key{Level::match, "kthread", Type::boolean, {}, "false", "", "true", "The policy matches kernel threads, which are never matched otherwise."},
    Key{Level::match, "user-units", Type::boolean, {}, "false", "", "true", "The policy also matches units and containers that users or containers made, here and in the maps below."},
    Key{Level::match, "not", Type::condition_lists, {}, "nothing", "", "{comm: \"vim*\"}", "None of these maps of conditions may hold."},
    Key{Level::match, "any", Type::condition_lists, {}, "nothing", "", "[{unit: nginx.service}, {comm: nginx}]", "At least one of these maps of conditions must hold."},
    Key{Level::match, "all", Type::condition_lists, {}, "nothing", "", "[{user: www-data}, {group: www-data}]", "Each of these maps of conditions must hold."},

    Key{Level::thread, "name", Type::patterns, {}, "every name", "", "\"io-thread-*\"", "The thread has this name, at most 15 bytes."},
    Key{Level::thread, "index", Type::index, {}, "every thread", "", "1-4", "The thread has this place among the process's threads in order of thread id; 0 is the main thread."},
    Key{Level::thread, "slot", Type::slot, {}, "none", "", "io", "Threads that join this slot go by this rule; without name and index, no others do."},
    Key{Level::thread, "leave", Type::boolean, {}, "false", "", "true", "The daemon leaves these threads alone."},
    Key{Level::thread, "nics", Type::patterns, {}, "those that serve their process", "", "eth0", "These threads read from these NICs: names or globs."},
    Key{Level::thread, "cpus", Type::cpus, {}, "as the policy", "CPU set", "housekeeping", "These threads may use these CPUs."},
    Key{Level::thread, "near", Type::near, {}, "as the policy", "CPU set", "node:1", "The daemon takes the CPUs of cpus nearest to these first; measured means near the rule's other threads."},
    Key{Level::thread, "spread", Type::choice, spreads, "as the policy", "", "cpu", "The daemon deals these threads out over the groups of this level."},
    Key{Level::thread, "bind", Type::choice, binds, "as the policy", "", "cpu", "The daemon gives each of these threads a mask of this width."},
    Key{Level::thread, "smt", Type::choice, smts, "as the policy", "", "avoid", "These threads share cores, use only the first CPU in the set of each core, or have one core for two that are numbered as siblings."},
};

/// Words that people bring from elsewhere.
struct Alias { Level level; V typed; V advice; };
constexpr std::array aliases{
    Alias{Level::top, "name", "a policy is named by its file; the name of a process is 'comm' below 'match'"},
    Alias{Level::top, "process", "the name of a process is 'comm' below 'match'"},
    Alias{Level::top, "selector", "that is 'match' here"},
    Alias{Level::top, "model", "that is 'affinity' here"},
    Alias{Level::top, "mask", "that is 'cpus' here"},
    Alias{Level::top, "cores", "that is 'cpus' here"},
    Alias{Level::top, "numa", "write 'cpus: node:0'"},
    Alias{Level::top, "node", "write 'cpus: node:0'"},
    Alias{Level::top, "isolated", "write 'cpus: isolated'"},
    Alias{Level::top, "prio", "that is 'priority' here"},
    Alias{Level::top, "pin", "that is 'bind' here"},
    Alias{Level::top, "hyperthreading", "that is 'smt' here"},
    Alias{Level::top, "interface", "that is 'nics' here"},
    Alias{Level::top, "interfaces", "that is 'nics' here"},
    Alias{Level::top, "xps", "write 'steering: false' to leave RPS, RFS and XPS as they are"},
    Alias{Level::top, "rfs", "write 'steering: false' to leave RPS, RFS and XPS as they are"},
    Alias{Level::top, "queues", "set it with ethtool -L, or CombinedChannels= of systemd.link(5)"},
    Alias{Level::top, "channels", "set it with ethtool -L, or CombinedChannels= of systemd.link(5)"},
    Alias{Level::top, "irq", "write 'affinity: irq'"},
    Alias{Level::top, "interrupts", "that is 'irqs' here"},
    Alias{Level::match, "name", "the name of a process is 'comm'"},
    Alias{Level::match, "process", "the name of a process is 'comm'"},
    Alias{Level::match, "pid", "policies go by what a process is; numbers are reused"},
    Alias{Level::match, "path", "that is 'exe' here"},
    Alias{Level::match, "args", "that is 'cmdline' here"},
    Alias{Level::match, "service", "that is 'unit' here"},
    Alias{Level::match, "slice", "'unit' also matches slices"},
    Alias{Level::match, "uid", "that is 'user' here"},
    Alias{Level::match, "gid", "that is 'group' here"},
    Alias{Level::match, "port", "that is 'listen' here"},
    Alias{Level::match, "or", "that is 'any' here"},
    Alias{Level::match, "and", "that is 'all' here"},
    Alias{Level::match, "except", "that is 'not' here"},
    Alias{Level::thread, "comm", "the name of a thread is 'name'"},
    Alias{Level::thread, "match", "a thread is chosen by 'name' and 'index'"},
    Alias{Level::thread, "join", "that is 'slot' here, and 'allow_join' at the top of the file"},
    Alias{Level::top, "slots", "write 'allow_join: [io]', and 'slot: io' in a thread rule"},
    Alias{Level::thread, "skip", "that is 'leave: true' here"},
};
// clang-format on

constexpr std::array<V, 3> place_names{"at the top of the file", "below 'match'", "below 'threads'"};

/// In the order of Type.
constexpr std::array<V, 18> type_names{"the number 1",
                                       "", // an integer: its bounds
                                       "true or false",
                                       "a text",
                                       "", // a choice: its values
                                       "a CPU-set expression",
                                       "measured, room, or a CPU-set expression",
                                       "a pattern or a list of patterns",
                                       "auto, a pattern or a list of patterns",
                                       "a policy's name or a list of names",
                                       "a port, a range of ports or a list of them",
                                       "a time from 0 to 1m, like 500ms or 2s",
                                       "a number or a range",
                                       "the name of a slot",
                                       "the name of a slot or a list of them",
                                       "a map of conditions",
                                       "a list of maps of conditions",
                                       "a list of thread rules"};

std::vector<V> names_of(std::span<const Key> keys) {
    std::vector<V> names;
    std::ranges::transform(keys, std::back_inserter(names), &Key::name);
    return names;
}

const Key* find_key(std::span<const Key> keys, V name) {
    const auto found = std::ranges::find(keys, name, &Key::name);
    return found == keys.end() ? nullptr : &*found;
}

/// A hint for a key that does not exist: a similar word, the level where the key belongs, or how it is
/// written; "": there is none.
std::string advise_key(std::span<const Key> keys, V name) {
    const Level level = keys.front().level;
    auto near = did_you_mean(name, names_of(keys));
    if (level == Level::other) return near.empty() ? "expected " + either(names_of(keys)) : near;
    for (const auto& alias : aliases)
        if (alias.level == level && alias.typed == name) return std::string(alias.advice);
    for (const Level other : {Level::top, Level::match, Level::thread})
        if (other != level && find_key(keys_of(other), name) != nullptr)
            return in_quotes(name) + " belongs " + std::string(place_names[static_cast<std::size_t>(other)]);
    const auto word = name.substr(0, name.find_first_of(" :"));
    if (word.size() == name.size() || find_key(keys, word) == nullptr) return near;
    return name[word.size()] == ':' ? fmt::format("is a space missing after '{}:'?", word)
                                    : fmt::format("is a ':' missing after '{}'?", word);
}

std::string name_of(const Entry& entry) { return fmt::format("'{}'", entry.key->name); }

std::string kind_of(const Node& node, bool is_like_text = true) {
    if (node.kind == Node::Kind::scalar)
        return (node.plain || !is_like_text ? "" : "the text ") + in_quotes(node.text);
    return node.kind == Node::Kind::list ? "a list" : node.kind == Node::Kind::map ? "a map" : "nothing";
}

bool takes_list(Type type) {
    return type == Type::patterns || type == Type::nics || type == Type::policies || type == Type::ports;
}

/// YAML joins a text over several lines in ways that are not seen ("a b", or a line end at its end).
bool is_one_line(const Node& node, const Entry& entry, Report& report) {
    if (node.one_line) return true;
    report.error(node, "the value of " + name_of(entry) + " runs over more than one line",
                 "is a '-' or a key missing in the next line?");
    return false;
}

bool is_scalar(const Entry& entry, Report& report, std::string hint = {}) {
    if (entry.value->kind != Node::Kind::scalar) return refuse_type(entry, report, std::move(hint));
    return entry.key->type == Type::text || is_one_line(*entry.value, entry, report);
}

/// Decimal without sign tricks: "010" is eight to one YAML reader and ten to another.
template <std::integral T>
std::optional<T> strict_number(V text) {
    const auto digits = text.starts_with('-') ? text.substr(1) : text;
    if (digits.size() > 1 && digits.starts_with('0')) return std::nullopt;
    return parse_number<T>(text);
}

template <std::unsigned_integral T>
std::optional<std::pair<T, T>> parse_range(V text) {
    const auto dash = text.find('-');
    const auto first = strict_number<T>(text.substr(0, dash));
    const auto last = dash == V::npos ? first : strict_number<T>(text.substr(dash + 1));
    if (!first || !last) return std::nullopt;
    return std::pair(*first, *last);
}

} // namespace

std::span<const Key> all_keys() { return key_table; }

std::span<const Key> keys_of(Level level) {
    const auto of_level = std::ranges::equal_range(key_table, level, {}, &Key::level);
    return {of_level.begin(), of_level.end()};
}

std::string type_name(const Key& key) {
    if (key.type == Type::choice) return either(key.values);
    if (key.type == Type::integer) return fmt::format("a number from {} to {}", key.low, key.high);
    if (key.type == Type::seconds)
        return fmt::format("a time from {} s to {} s, like 30s or 5m", key.low, key.high);
    return std::string(key.type == Type::described ? key.unit
                                                   : type_names[static_cast<std::size_t>(key.type)]);
}

bool refuse_type(const Entry& entry, Report& report, std::string hint) {
    const bool is_map = entry.key->type == Type::conditions || entry.key->type == Type::condition_lists ||
                        entry.key->type == Type::rules;
    report.error(*entry.value,
                 fmt::format("{} must be {}, not {}", name_of(entry), type_name(*entry.key),
                             kind_of(*entry.value, !is_map)),
                 std::move(hint));
    return false;
}

Fields::Fields(const Node& map, std::span<const Key> keys, Report& report) : report_(report) {
    for (std::size_t at = 0; at + 1 < map.items.size() && !report.is_full(); at += 2) {
        const Node& name = map.items[at];
        const Node& value = map.items[at + 1];
        const Key* key = find_key(keys, name.text);
        if (key == nullptr) {
            report.error(name, "unknown key " + in_quotes(name.text), advise_key(keys, name.text));
            continue;
        }
        const auto earlier = std::ranges::find(named_, key, &Entry::key);
        if (earlier != named_.end()) {
            report.error(name, "duplicate key " + in_quotes(name.text),
                         fmt::format("first in line {}{}", earlier->name->line,
                                     takes_list(key->type) ? "; write several as a list" : ""));
            continue;
        }
        named_.push_back({key, &name, &value});
        if (value.kind != Node::Kind::null)
            entries_.push_back(named_.back());
        else
            report.error(name, "'" + name.text + "' has no value",
                         fmt::format("it takes {}, for instance {}", type_name(*key), key->example));
    }
}

const Entry* Fields::find(V name) const {
    const auto found =
        std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.key->name == name; });
    return found == entries_.end() ? nullptr : &*found;
}

bool Fields::names(V name) const {
    return std::ranges::any_of(named_, [&](const Entry& entry) { return entry.key->name == name; });
}

bool read_value(const Entry& entry, bool& target, Report& report) {
    static constexpr std::array<V, 7> yes{"yes", "Yes", "on", "On", "1", "True", "TRUE"};
    static constexpr std::array<V, 7> no{"no", "No", "off", "Off", "0", "False", "FALSE"};
    if (!is_scalar(entry, report)) return false;
    const auto& text = entry.value->text;
    const bool is_true = text == "true", is_false = text == "false";
    if (entry.value->plain && (is_true || is_false)) {
        target = is_true;
        return true;
    }
    std::string hint;
    if (is_true || std::ranges::find(yes, text) != yes.end()) hint = "write true, without quotes";
    if (is_false || std::ranges::find(no, text) != no.end()) hint = "write false, without quotes";
    return refuse_type(entry, report, hint);
}

bool read_value(const Entry& entry, int& target, Report& report) {
    if (!is_scalar(entry, report)) return false;
    const auto number = strict_number<int>(entry.value->text);
    if (!number || !entry.value->plain || *number < entry.key->low || entry.key->high < *number)
        return refuse_type(entry, report, !entry.value->plain && number ? "write it without quotes" : "");
    target = *number;
    return true;
}

bool read_value(const Entry& entry, std::string& target, Report& report) {
    if (!is_scalar(entry, report)) return false;
    if (entry.value->text.size() > 4096) {
        report.error(*entry.value, name_of(entry) + " is longer than 4096 bytes");
        return false;
    }
    target = entry.value->text;
    return true;
}

bool read_choice(const Entry& entry, std::size_t& target, Report& report) {
    if (!is_scalar(entry, report)) return false;
    const auto& values = entry.key->values;
    const auto found = std::ranges::find(values, V(entry.value->text));
    if (found == values.end()) return refuse_type(entry, report, did_you_mean(entry.value->text, values));
    target = static_cast<std::size_t>(found - values.begin());
    return true;
}

bool read_value(const Entry& entry, std::optional<CpuExpr>& target, Report& report) {
    const Node& value = *entry.value;
    const bool is_list = value.kind == Node::Kind::list;
    if (!is_scalar(entry, report, is_list ? "write CPUs as one text: \"0-3,8\"" : "")) return false;
    auto expr = parse_cpu_expr(value.text);
    if (!expr) {
        report.error_inside(value, expr.error().offset, expr.error().length,
                            name_of(entry) + ": " + expr.error().message, expr.error().hint);
        return false;
    }
    target = std::move(*expr);
    return true;
}

bool read_value(const Entry& entry, std::chrono::milliseconds& target, Report& report) {
    if (!is_scalar(entry, report)) return false;
    const auto time = parse_duration(entry.value->text);
    if (!time || *time > std::chrono::minutes(1)) return refuse_type(entry, report);
    target = *time;
    return true;
}

bool read_value(const Entry& entry, std::chrono::seconds& target, Report& report) {
    using std::chrono::seconds;
    const bool is_text = entry.value->kind == Node::Kind::scalar;
    const auto time = is_text ? parse_duration(entry.value->text) : std::nullopt;
    if (!time || *time < seconds(entry.key->low) || *time > seconds(entry.key->high) ||
        *time % seconds(1) != seconds(0))
        return refuse_type(entry, report);
    target = std::chrono::duration_cast<seconds>(*time);
    return true;
}

bool read_value(const Entry& entry, std::optional<std::pair<unsigned, unsigned>>& target, Report& report) {
    if (!is_scalar(entry, report)) return false;
    const auto range = parse_range<unsigned>(entry.value->text);
    if (!range) return refuse_type(entry, report);
    if (range->first > range->second) {
        report.error(*entry.value, name_of(entry) + ": the range runs backwards");
        return false;
    }
    target = range;
    return true;
}

bool read_value(const Entry& entry, Ports& target, Report& report) {
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
            target.push_back(*range);
        }
    }
    return !target.empty();
}

std::vector<const Node*> read_list(const Entry& entry, Report& report) {
    const Node& value = *entry.value;
    std::vector<const Node*> elements;
    if (value.kind == Node::Kind::map) refuse_type(entry, report);
    if (value.kind == Node::Kind::scalar && is_one_line(value, entry, report)) elements.push_back(&value);
    if (value.kind != Node::Kind::list) return elements;
    if (value.items.empty()) report.error(value, "the list of " + name_of(entry) + " is empty");
    for (std::size_t at = 0; at < value.items.size(); ++at) {
        const Node& element = value.items[at];
        if (element.kind == Node::Kind::null)
            report.error(*entry.name, fmt::format("element {} of {} is empty", at + 1, name_of(entry)));
        else if (element.kind != Node::Kind::scalar)
            report.error(element,
                         "an element of " + name_of(entry) + " must be a text, not " + kind_of(element));
        else if (is_one_line(element, entry, report))
            elements.push_back(&element);
    }
    std::set<V> seen;
    for (const Node* element : elements)
        if (!seen.insert(element->text).second)
            report.warn(*element, in_quotes(element->text) + " is in the list twice");
    return elements;
}

bool read_value(const Entry& entry, std::vector<Pattern>& target, Report& report,
                const std::function<void(Pattern&, const Node&)>& see) {
    for (const Node* element : read_list(entry, report)) {
        auto pattern = report.patterns().parse(element->text);
        if (!pattern) {
            report.error(*element, name_of(entry) + ": " + pattern.error().message);
            continue;
        }
        if (see) see(*pattern, *element);
        target.push_back(std::move(*pattern));
    }
    return !target.empty();
}

} // namespace affinityd::policy
