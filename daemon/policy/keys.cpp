// SPDX-License-Identifier: Apache-2.0
#include "policy/keys.hpp"

#include "policy/suggest.hpp"

#include <algorithm>
#include <array>

namespace affinityd::policy {

namespace {

using V = std::string_view;
constexpr std::array<V, 4> models{"none", "irq", "process", "full"};
constexpr std::array<V, 6> spreads{"any", "cpu", "core", "llc", "node", "socket"};
constexpr std::array<V, 5> binds{"cpu", "core", "llc", "node", "set"};
constexpr std::array<V, 2> smts{"share", "avoid"};
constexpr std::array<V, 6> togethers{"none", "core", "llc", "node", "socket", "measured"};
constexpr std::array<V, 3> drifts{"enforce", "once", "yield"};
constexpr std::array<V, 2> priors{"replace", "keep"};
constexpr std::array<V, 2> stops{"restore", "keep"};
constexpr std::array<V, 2> ways{"affinity", "cpuset"};
constexpr std::array<V, 5> steers{"none", "auto", "accept", "tasks", "flows"};
constexpr std::array<V, 2> memories{"stay", "follow"};
constexpr std::array<V, 3> exclusives{"false", "true", "always"};

// clang-format off
constexpr std::array keys{
    Key{Level::top, "version", Type::version, {}, "1, with a warning", "", "1", "Version of the language; files of version 1 keep their meaning."},
    Key{Level::top, "description", Type::text, {}, "empty", "", "nginx workers on the cores of the NIC", "A text for people, shown by affinityctl."},
    Key{Level::top, "priority", Type::integer, {}, "0", "", "10", "Policies with a higher number are asked first."},
    Key{Level::top, "default", Type::boolean, {}, "false", "", "true", "Takes the tasks that no other policy wants; asked last whatever its priority."},
    Key{Level::top, "match", Type::conditions, {}, "required, except with default: true, or affinity: irq and named nics or irqs", "", "{comm: redis-server}", "Conditions that a process must meet; all of them must hold."},
    Key{Level::top, "affinity", Type::choice, models, "process", "", "full", "Chooses between nothing, the interrupts of the NICs, the tasks, and both, each task with the interrupts that serve it."},
    Key{Level::top, "nics", Type::nics, {}, "auto", "", "[eth0, \"enp65s0f*\"]", "The NICs whose interrupts belong to the policy; auto means those whose addresses the matched sockets use."},
    Key{Level::top, "irqs", Type::patterns, {}, "none", "", "[ttyS0, \"reo2host-*\"]", "Other interrupts of the policy, by handler (/proc/interrupts) or PCI function, dealt out over the cores of cpus."},
    Key{Level::top, "cpus", Type::cpus, {}, "every online CPU that is not isolated", "CPU set", "nic & !smt", "The CPUs that the policy may use."},
    Key{Level::top, "near", Type::near, {}, "nothing", "CPU set", "nic:eth0", "Among cpus, those nearest to these are used first; measured means near the policy's other tasks."},
    Key{Level::top, "spread", Type::choice, spreads, "any", "", "core", "Deals tasks out, one after the other, over the groups of this level."},
    Key{Level::top, "bind", Type::choice, binds, "llc", "", "core", "The width of each task's mask around its place; set means all of cpus."},
    Key{Level::top, "smt", Type::choice, smts, "share", "", "avoid", "Shares cores between tasks, or uses only the first CPU in the set of each core (avoid)."},
    Key{Level::top, "together", Type::choice, togethers, "none", "", "llc", "Keeps all threads of one process inside one group of this level."},
    Key{Level::top, "threads", Type::rules, {}, "every thread as the policy says", "", "[{name: \"io*\", cpus: \"0\"}]", "Rules for single threads; the first that fits a thread places it."},
    Key{Level::top, "allow_join", Type::slots, {}, "none", "", "arrivals", "The slots that threads of these processes may join through libaffinity(3)."},
    Key{Level::top, "exclusive", Type::choice, exclusives, "false", "", "true", "Keeps every other task off these CPUs while a program of the policy runs (true), or at all times (always)."},
    Key{Level::top, "separate", Type::boolean, {}, "false", "", "true", "Keeps interrupts off the worker's core, but in its cache group."},
    Key{Level::top, "steering", Type::boolean, {}, "true", "", "false", "Sets XPS, RPS and RFS along with the interrupts of the NICs."},
    Key{Level::top, "steer", Type::choice, steers, "auto", "", "accept", "Brings connections to the worker on whose lane their packets arrive."},
    Key{Level::top, "drift", Type::choice, drifts, "enforce", "", "once", "The answer to another program that changes a mask which the policy has set."},
    Key{Level::top, "prior", Type::choice, priors, "replace", "", "keep", "Replaces a mask that a task had before, or keeps it and leaves the task alone."},
    Key{Level::top, "on_stop", Type::choice, stops, "restore", "", "keep", "Restores or keeps masks when the daemon stops or the policy is removed."},
    Key{Level::top, "means", Type::choice, ways, "affinity", "", "cpuset", "Places tasks by their affinity masks alone, or by the cpuset of their unit, too."},
    Key{Level::top, "settle", Type::duration, {}, "2s", "time", "500ms", "The time for which a new process may use all of cpus, so that it counts them right, before it gets its own place."},
    Key{Level::top, "memory", Type::choice, memories, "stay", "", "follow", "Leaves a process's memory where it is, or moves it to the nodes of its CPUs (follow)."},

    Key{Level::match, "comm", Type::patterns, {}, "any", "", "redis-server", "Name of the process (of its main thread), at most 15 bytes."},
    Key{Level::match, "exe", Type::patterns, {}, "any", "", "/usr/sbin/nginx", "Path of the program file."},
    Key{Level::match, "cmdline", Type::patterns, {}, "any", "", "\"*worker process*\"", "Arguments, joined by one space."},
    Key{Level::match, "unit", Type::patterns, {}, "any", "", "nginx.service", "systemd unit, or a slice around it."},
    Key{Level::match, "cgroup", Type::patterns, {}, "any", "", "/system.slice/*", "Path of the control group."},
    Key{Level::match, "user", Type::patterns, {}, "any", "", "postgres", "Effective user, by name, or by number where it has none."},
    Key{Level::match, "group", Type::patterns, {}, "any", "", "www-data", "Effective group, by name, or by number where it has none."},
    Key{Level::match, "container", Type::patterns, {}, "any", "", "\"3f4a9c*\"", "Container, by id or name as the control group's path has it."},
    Key{Level::match, "parent", Type::policies, {}, "any", "", "nginx", "Descendants of a process that the named policy matches."},
    Key{Level::match, "listen", Type::ports, {}, "any", "port", "[80, 443, \"8000-8099\"]", "The process listens on one of these TCP or UDP ports."},
    Key{Level::match, "kthread", Type::boolean, {}, "false", "", "true", "Matches kernel threads, which are never matched otherwise."},
    Key{Level::match, "user-units", Type::boolean, {}, "false", "", "true", "Lets unit and container, here and in the maps below, mean those that users and containers made, too."},
    Key{Level::match, "not", Type::condition_lists, {}, "nothing", "", "{comm: \"vim*\"}", "None of these maps of conditions may hold."},
    Key{Level::match, "any", Type::condition_lists, {}, "nothing", "", "[{unit: nginx.service}, {comm: nginx}]", "At least one of these maps of conditions must hold."},
    Key{Level::match, "all", Type::condition_lists, {}, "nothing", "", "[{user: www-data}, {group: www-data}]", "Each of these maps of conditions must hold."},

    Key{Level::thread, "name", Type::patterns, {}, "every name", "", "\"io-thread-*\"", "Name of the thread, at most 15 bytes."},
    Key{Level::thread, "index", Type::index, {}, "every thread", "", "1-4", "Place among the process's threads in order of thread id; 0 is the main thread."},
    Key{Level::thread, "slot", Type::slot, {}, "none", "", "io", "Threads that join this slot go by this rule; without name and index, no others do."},
    Key{Level::thread, "leave", Type::boolean, {}, "false", "", "true", "Leaves these threads alone."},
    Key{Level::thread, "cpus", Type::cpus, {}, "as the policy", "CPU set", "housekeeping", "The CPUs that these threads may use."},
    Key{Level::thread, "near", Type::near, {}, "as the policy", "CPU set", "node:1", "Among cpus, those nearest to these are used first; measured means near the rule's other threads."},
    Key{Level::thread, "spread", Type::choice, spreads, "as the policy", "", "cpu", "Deals these threads out over the groups of this level."},
    Key{Level::thread, "bind", Type::choice, binds, "as the policy", "", "cpu", "The width of each of their masks."},
    Key{Level::thread, "smt", Type::choice, smts, "as the policy", "", "avoid", "Shares cores between these threads, or uses only the first CPU in the set of each core."},
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
    Alias{Level::top, "rps", "write 'steering: false' to leave RPS, RFS and XPS as they are"},
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

std::string_view place_name(Level level) {
    switch (level) {
    case Level::top:
        return "at the top of the file";
    case Level::match:
        return "below 'match'";
    case Level::thread:
        break;
    }
    return "below 'threads'";
}

} // namespace

std::span<const Key> all_keys() { return keys; }

const Key* find_key(Level level, std::string_view name) {
    const auto found =
        std::ranges::find_if(keys, [&](const Key& key) { return key.level == level && key.name == name; });
    return found == keys.end() ? nullptr : &*found;
}

std::vector<std::string_view> key_names(Level level) {
    std::vector<std::string_view> names;
    for (const auto& key : keys)
        if (key.level == level) names.push_back(key.name);
    return names;
}

std::string type_name(const Key& key) {
    switch (key.type) {
    case Type::version:
        return "the number 1";
    case Type::integer:
        return "a number from -100000 to 100000";
    case Type::boolean:
        return "true or false";
    case Type::text:
        return "a text";
    case Type::choice:
        return either(key.values);
    case Type::cpus:
        return "a CPU-set expression";
    case Type::near:
        return "measured, or a CPU-set expression";
    case Type::patterns:
        return "a pattern or a list of patterns";
    case Type::nics:
        return "auto, a pattern or a list of patterns";
    case Type::policies:
        return "a policy's name or a list of names";
    case Type::ports:
        return "a port, a range of ports or a list of them";
    case Type::duration:
        return "a time from 0 to 1m, like 500ms or 2s";
    case Type::index:
        return "a number or a range";
    case Type::slot:
        return "the name of a slot";
    case Type::slots:
        return "the name of a slot or a list of them";
    case Type::conditions:
        return "a map of conditions";
    case Type::condition_lists:
        return "a list of maps of conditions";
    case Type::rules:
        return "a list of thread rules";
    case Type::described:
        break;
    }
    return std::string(key.unit);
}

std::string advise_key(Level level, std::string_view name) {
    for (const auto& alias : aliases)
        if (alias.level == level && alias.typed == name) return std::string(alias.advice);
    for (const Level other : {Level::top, Level::match, Level::thread})
        if (other != level && find_key(other, name) != nullptr)
            return in_quotes(name) + " belongs " + std::string(place_name(other));
    const auto word = name.substr(0, name.find_first_of(" :"));
    if (word.size() < name.size() && name[word.size()] == ':' && find_key(level, word) != nullptr)
        return "is a space missing after '" + std::string(word) + ":'?";
    if (word.size() < name.size() && find_key(level, word) != nullptr)
        return "is a ':' missing after '" + std::string(word) + "'?";
    return did_you_mean(name, key_names(level));
}

} // namespace affinityd::policy
