// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/survey/suggestion.hpp"

#include "affinityctl/survey/doctor.hpp"
#include "base/escape.hpp"
#include "base/text.hpp"
#include "netdev/nic.hpp"
#include "planner/slots.hpp"
#include "policy/pattern.hpp"
#include "policy/policy.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl::survey {

namespace netdev = affinityd::netdev;
namespace policy = affinityd::policy;
namespace topology = affinityd::topology;
using affinityd::counted;
using affinityd::CpuSet;
using affinityd::escaped;
using affinityd::grouped;
using affinityd::is_digit;
using affinityd::split_words;
using affinityd::planner::groups_of;

namespace {

using policy::yaml_text;

constexpr double least_busy = 0.05;   ///< of one CPU: a server or thread below that is idle
constexpr double least_reads = 100;   ///< a second: a server with these is not idle either
constexpr double least_part = 0.05;   ///< of a server's CPU time: threads of names below that are aside
constexpr double least_far = 0.25;    ///< of memory on other nodes
constexpr std::size_t most_names = 8; ///< of threads in a rule

/// Servers that open a listener for each worker if they are told to.
struct Switch {
    std::string_view comm, advice;
};
constexpr std::array switches{
    Switch{"nginx", "write \"reuseport\" behind each \"listen\" of nginx"},
    Switch{"haproxy", "write \"shards by-thread\" behind each \"bind\" of HAProxy (2.5 or later)"},
    Switch{"envoy", "set \"enable_reuse_port: true\" in the listeners of Envoy"},
    Switch{"apache2", "set \"ListenCoresBucketsRatio 1\" in Apache"},
    Switch{"unbound", "set \"so-reuseport: yes\" in Unbound"},
    Switch{"[TS_MAIN]", "set proxy.config.exec_thread.listen to 1 and proxy.config.accept_threads to 0"},
};

constexpr std::string_view kubelet = "the kubelet"; ///< a manager of cpusets

/// Threads of the JVM that never count CPUs.
constexpr std::array<std::string_view, 2> collectors{"GC Thread#*", "G1 Conc#*"};
/// Servers that fork to save: the child begins with the mask of the thread that forks.
constexpr std::array<std::string_view, 3> savers{"redis-server", "valkey-server", "keydb-server"};
constexpr std::string_view virtual_cpus = "CPU */KVM";

/// A pattern for a name of any bytes: what a glob acts upon stands for itself, and bytes that are no plain
/// text stand for any. With `is_kind`, the last number in it does, too.
std::string pattern_for(std::string_view name, bool is_kind) {
    const std::size_t end = is_kind ? name.find_last_of("0123456789") + 1 : 0; // npos + 1 is 0
    std::size_t begin = end;
    while (begin > 0 && is_digit(name[begin - 1]))
        --begin;
    std::string pattern;
    bool was_any = false;
    for (std::size_t at = 0; at < name.size(); ++at) {
        const char c = name[at];
        const bool is_any = c < 0x20 || c > 0x7e || (at >= begin && at < end);
        if (!is_any && std::string_view("*?[\\").find(c) != std::string_view::npos) pattern += '\\';
        if (!is_any || !was_any) pattern += is_any ? '*' : c;
        was_any = is_any;
    }
    return policy::Pattern::is_expression(pattern) ? "[/]" + pattern.substr(1) : pattern;
}

std::string percent(double part) { return fmt::format("{:.{}f} %", 100 * part, part < 0.0995 ? 1 : 0); }

std::string told(const FoundSetting& setting) { return setting.text + " in " + setting.file; }

std::string told(const std::vector<FoundSetting>& settings) {
    std::string text;
    for (const auto& setting : settings)
        text += (text.empty() ? "" : ", ") + told(setting);
    return text;
}

/// Threads whose names differ in numbers only.
struct ThreadKind {
    std::size_t threads = 0;
    double busy = 0;
};
using ThreadKinds = std::map<std::string, ThreadKind>; ///< by pattern

/// Works out one server.
class Proposing {
  public:
    /// `taken`: interface -> policy that places its queues.
    Proposing(const SeenServers& seen, const Server& server, std::string file,
              const std::map<std::string, std::string>& taken)
        : seen_(seen), server_(server), topology_(seen.machine.topology), file_(std::move(file)) {
        for (const auto& name : server.nics)
            if (const auto found = taken.find(name); found == taken.end())
                nics_.push_back(name);
            else
                taken_.insert(*found);
        result_.server = server.name;
        result_.busy = busy_cpus(server);
        for (const auto& process : server.processes) {
            result_.pids.push_back(process.pid);
            for (const auto& thread : process.threads) {
                auto& kind = kinds_[pattern_for(thread.name, true)];
                ++kind.threads;
                kind.busy += thread.busy;
            }
        }
    }

    Suggestion run() {
        choose();
        return std::move(result_);
    }

  private:
    /// The cases, and their order.
    void choose() {
        if (!server_.policy.empty()) return leave("policy " + server_.policy + " has it already");
        if (is_idle(seen_, server_)) {
            result_.is_idle = true;
            return leave(fmt::format("it used {} of one CPU, less than {}", percent(result_.busy),
                                     percent(least_busy)));
        }
        if (topology_.online.count() < 2) return leave("the machine has one CPU");
        const auto masks = masks_of_threads();
        if (masks.size() > 1)
            return leave(
                fmt::format("its threads have masks of their own ({}), by itself or another program: leave "
                            "it so, or unset "
                            "that (worker_cpu_affinity, cpu-map, server_cpulist, vcpupin ...) and ask again",
                            first_of(masks)));
        add("version", "1", "");
        add("match", match(), "");
        if (!masks.empty()) return narrowed(*masks.begin());
        if (server_.counts_cpus) return counting();
        if (kinds_.contains(std::string(virtual_cpus))) return guests();
        if (const auto* listener = main_listener(); listener != nullptr && !server_.nics.empty())
            return nics_.empty() ? beside(*listener) : serve(*listener);
        compute();
    }

    void add(std::string key, std::string value, std::string reason) {
        result_.file = file_;
        result_.lines.push_back({std::move(key), std::move(value), std::move(reason)});
    }
    void advise(std::string text) { result_.advice.push_back(std::move(text)); }
    void leave(std::string why) {
        result_.lines.clear();
        result_.file.clear();
        result_.why_not = std::move(why);
    }

    [[nodiscard]] std::string match() const {
        if (!server_.unit.empty())
            return fmt::format("{{unit: {}}}", yaml_text(pattern_for(server_.unit, false)));
        auto text = fmt::format("{{exe: {}", yaml_text(pattern_for(server_.exe, false)));
        if (server_.is_in_container) return text + ", container: \"*\"}";
        // A program may be several servers: an interpreter is.
        if (const auto& comm = server_.processes.front().comm;
            !server_.exe.substr(server_.exe.rfind('/') + 1).starts_with(comm))
            text += fmt::format(", comm: {}", yaml_text(pattern_for(comm, false)));
        std::vector<std::string> users;
        for (const auto& user : server_.users)
            users.push_back(pattern_for(user, false));
        return fmt::format("{}, user: {}}}", text, yaml_list(users));
    }

    /// The masks of threads that may not use all CPUs that are not isolated, if any is so.
    [[nodiscard]] std::set<CpuSet> masks_of_threads() const {
        std::set<CpuSet> masks;
        bool is_narrow = false;
        for (const auto& process : server_.processes)
            for (const auto& thread : process.threads) {
                if (thread.allowed.empty()) continue;
                is_narrow = is_narrow || !thread.allowed.contains(topology_.online - topology_.isolated);
                masks.insert(thread.allowed & topology_.online);
            }
        return is_narrow ? masks : std::set<CpuSet>();
    }

    static std::string first_of(const std::set<CpuSet>& masks) {
        std::string text;
        for (std::size_t left = 3; const auto& mask : masks) {
            if (left-- == 0) return text + " ...";
            text += (text.empty() ? "" : "; ") + mask.to_list();
        }
        return text;
    }

    /// All of its threads have these CPUs, and not all that are not isolated.
    void narrowed(const CpuSet& cpus) {
        const CpuSet isolated = cpus & topology_.isolated, others = cpus - isolated;
        const bool can_share = isolated.count() > 1 && others.empty();
        if (!server_.manager.empty() && (server_.manager == kubelet || !can_share))
            return leave(fmt::format("its cpuset moves: leave it ({} gave it {} {})", server_.manager,
                                     cpus.count() > 1 ? "CPUs" : "CPU", cpus.to_list()));
        std::size_t threads = 0;
        for (const auto& [pattern, kind] : kinds_)
            threads += kind.threads;
        if (can_share && threads == 1)
            return leave("it has one thread, which stays on one of its isolated CPUs");
        add("cpus", yaml_text((others.empty() ? cpus : others).to_list()),
            "its threads have " +
                (others.empty() || isolated.empty() ? "these CPUs" : "CPUs " + cpus.to_list()) + " now" +
                (server_.settings.empty() ? ", by another program or itself"
                                          : ": " + told(server_.settings)));
        if (can_share) {
            add("spread", "cpu",
                fmt::format("the kernel balances no load over isolated CPUs: {} share one of them until this "
                            "policy deals them out",
                            counted(threads, "thread")));
            add("bind", "cpu", "each has one of them, so this policy changes masks at once");
        } else if (!isolated.empty() && !others.empty())
            add("bind", "set",
                fmt::format(
                    "isolated CPUs {} are left out, because the kernel balances no load over them, so "
                    "this policy changes masks at once",
                    isolated.to_list()));
        else
            add("bind", "set", "none gets fewer than it has now, so this policy changes nothing at first");
        if (!server_.nics.empty() && main_listener() != nullptr)
            advise("to have it placed by its NIC, take away the setting that gives it these CPUs, start it "
                   "anew, and ask again");
        if (!server_.nics.empty())
            for (const auto& setting : seen_.interrupt_settings)
                advise(told(setting) + " is about interrupts, which this policy leaves as they are");
    }

    void counting() {
        std::vector<std::string> names;
        for (const auto name : collectors)
            if (kinds_.contains(std::string(name))) names.emplace_back(name);
        const bool is_kept = keep_on_node();
        if (names.empty() && !is_kept)
            return leave("it counts its CPUs again and again, and with fewer it makes fewer threads");
        add("bind", "set",
            "it counts its CPUs again and again, so no thread is narrowed but those that never do");
        // They work at different times, so each kind is dealt out by itself.
        std::string rules;
        for (const auto& name : names)
            rules += fmt::format("\n  - {{name: {}, spread: core, bind: core}}", yaml_text(name));
        if (!names.empty()) add("threads", rules, "the collector's threads never count CPUs: a core each");
        tell_of_settings();
    }

    void guests() {
        const auto& kind = kinds_.at(std::string(virtual_cpus));
        if (!keep_on_node() && topology_.llc_groups().size() < 2)
            return leave("its virtual CPUs share one node and one cache, wherever they run");
        const bool has_cores = kind.threads <= cores_in(topology_.online);
        add("threads",
            fmt::format("\n  - {{name: {}, spread: core, bind: {}}}", yaml_text(virtual_cpus),
                        has_cores ? "core" : "llc"),
            fmt::format("{} for {} cores: {}", counted(kind.threads, "virtual CPU"),
                        cores_in(topology_.online),
                        has_cores ? "a core each" : "the scheduler fills gaps inside a cache group"));
        tell_of_settings();
    }

    /// Where there are several nodes, and each process fits into one.
    bool keep_on_node() {
        if (nodes_with_cpus() < 2) return false;
        double most = 0;
        for (const auto& process : server_.processes)
            most = std::max(most, busy_of(process));
        const auto cores = cores_in(topology_.node_cpus_of(topology_.online.first()));
        if (most > static_cast<double>(cores)) return false;
        add("together", "node",
            fmt::format("a process keeps {:.1f} CPUs busy at most, and a node has {}", most,
                        counted(cores, "core")));
        add("memory", "follow", "its memory goes with it");
        return true;
    }

    /// The processes that take the server's connections.
    struct Team {
        std::vector<const ServerProcess*> takers;
        std::size_t workers = 0;
        bool is_forking = false; ///< a process for each connection
        bool are_threads = false;
    };

    /// A master, which only holds listeners for its children, is none of them.
    [[nodiscard]] Team team_of(const ServerListener& listener) const {
        Team team;
        std::vector<const ServerProcess*> holders;
        std::set<int> masters;
        for (const auto& process : server_.processes)
            if (listener.pids.contains(process.pid)) {
                holders.push_back(&process);
                masters.insert(process.parent);
            }
        std::ranges::copy_if(holders, std::back_inserter(team.takers),
                             [&](const auto* process) { return !masters.contains(process->pid); });
        if (team.takers.empty()) team.takers = holders;
        const auto others = static_cast<std::size_t>( // that have the listener no more
            std::ranges::count_if(server_.processes, [&](const ServerProcess& process) {
                return process.parent == team.takers.front()->pid && !listener.pids.contains(process.pid);
            }));
        team.is_forking = team.takers.size() == 1 && others > 1;
        const auto threads = team.takers.size() == 1 ? workers_in(*team.takers.front()) : 0;
        team.are_threads = threads > 1;
        team.workers = team.is_forking ? others : std::max(team.takers.size(), threads);
        return team;
    }

    /// Another policy places the queues of its NICs, as only one can.
    void beside(const ServerListener& listener) {
        const auto& [nic, policy] = *taken_.begin();
        const auto why = fmt::format("policy {} places the queues of {}", policy, nic);
        const auto team = team_of(listener);
        const bool has_groups = topology_.llc_groups().size() > 1;
        if (!has_groups && (team.workers < 2 || team.is_forking))
            return leave(why + ", and all CPUs share a cache: it is near them wherever it runs");
        if (const auto apart = topology_.isolated | topology_.nohz_full; !apart.empty())
            add("cpus", "housekeeping", fmt::format("CPUs {} are set apart", apart.to_list()));
        if (has_groups)
            add("near", yaml_text("nic:" + pattern_for(nic, false)), why + ", so this one runs near them");
        if (team.workers > 1) add("spread", "core", "one after the other, a core each");
        if (has_groups)
            add("bind", "llc", "each follows its packets inside a cache group");
        else
            add("bind", "core",
                why + ", and all CPUs share a cache: these two share cores only where none is free");
        if (!team.is_forking) thread_rules(team);
        tell_of_settings();
    }

    /// Connections come to it over a NIC.
    void serve(const ServerListener& listener) {
        const auto of = team_of(listener);
        const auto& [takers, workers, is_forking, are_threads] = of;
        if (is_forking && !seen_.can_steer) {
            if (topology_.llc_groups().size() < 2)
                return leave(
                    "it has a process for each connection, and all CPUs share a cache: there is nothing "
                    "to keep together");
            add("spread", "llc",
                fmt::format("a process for each connection of port {} ({} now): each stays in a cache group",
                            listener.port, workers));
            return tell_of_settings();
        }
        const auto team = counted(workers, are_threads ? "thread" : "worker");
        const auto has_switch = std::ranges::find(switches, takers.front()->comm, &Switch::comm);
        const bool can_switch = has_switch != switches.end();
        const bool has_own = listener.sockets > 1 && !is_forking;

        if (is_forking)
            model(workers,
                  fmt::format("a process for each connection of port {} ({} now)", listener.port, workers));
        else if (workers == 1)
            model(workers,
                  fmt::format("one thread takes and serves the connections of port {}", listener.port));
        else if (has_own)
            model(workers, fmt::format("{} with listeners of their own at port {}", team, listener.port));
        else
            model(workers,
                  fmt::format("{} take the connections of port {} from one socket", team, listener.port));

        if (workers > 1) add("spread", "core", "one after the other, a core each");
        if (is_forking) {
            add("bind", "core", "each stays on the core where its packets arrive");
            add("steer", "tasks",
                "a process moves to the core where most of its packets arrive; queries that compute gain "
                "nothing "
                "by it: compare affinityctl locality, and your load, with and without");
        } else if (has_own && workers > 1) {
            if (listener.sockets < workers)
                advise(fmt::format("port {} has {} for {}: let each have its own", listener.port,
                                   counted(listener.sockets, "listener"), team));
            if (!listener.has_udp && seen_.can_steer) // the kernel's hash chooses the worker of a datagram
                add("bind", "core", "each gets the connections that arrive on its core");
        } else if (workers > 1 && are_threads && !can_switch) {
            add("bind", "core", "packets are handed on to this core");
            add("steer", "flows",
                "no thread can be chosen by its listener, so the kernel hands packets on to the core of the "
                "one "
                "that reads them (RFS)");
        } else if (workers > 1) {
            advise((can_switch
                        ? std::string(has_switch->advice)
                        : "give each worker a listener of its own (SO_REUSEPORT), if the program can") +
                   ", so that each gets the connections that arrive on its core; then ask again. Without it, "
                   "about one read in " +
                   std::to_string(workers) + " is local, and \"bind\" stays out");
        }
        if (!is_forking) thread_rules(of);
        tell_of_settings();
        tell_of_nics(workers);
    }

    /// The lines that all have whose connections come over a NIC.
    void model(std::size_t workers, std::string reason) {
        const auto node = node_of_nics();
        std::size_t queues = 0;
        for (const auto& name : nics_)
            queues += queues_of_nic(name);
        reason += fmt::format(", {} of {}", counted(queues, "queue"), fmt::join(nics_, ", "));
        if (node) reason += fmt::format(" on node {}", node->id);
        if (server_.local)
            reason += fmt::format("; local reads now {} of {:.0f} a second", percent(*server_.local),
                                  server_.reads_per_second.value_or(0));
        add("affinity", "full", reason);
        std::vector<std::string> patterns;
        for (const auto& name : nics_)
            patterns.push_back(pattern_for(name, false));
        add("nics", yaml_list(patterns), "");

        const auto apart = topology_.isolated | topology_.nohz_full;
        const auto cores = node ? cores_in(node->cpus - apart) : 0;
        const bool is_near = node && workers <= cores;
        std::string why;
        if (is_near)
            why = fmt::format("node {} has {} for {}", node->id, counted(cores, "core"),
                              counted(workers, "worker"));
        if (!apart.empty())
            why += fmt::format("{}CPUs {} are set apart (isolcpus=, nohz_full= or a partition)",
                               why.empty() ? "" : "; ", apart.to_list());
        if (is_near || !apart.empty())
            add("cpus",
                yaml_text(!is_near        ? "housekeeping"
                          : apart.empty() ? "nic"
                                          : "nic & housekeeping"),
                why);
        if (!is_near) return;
        std::uint64_t all = 0, near = 0;
        for (const auto& [id, kib] : server_.private_kib) {
            // The kernel itself moves cold memory to nodes without CPUs.
            if (const auto* other = topology_.node(id); other == nullptr || other->cpus.empty()) continue;
            all += kib;
            if (id == node->id) near += kib;
        }
        if (all > 0 && static_cast<double>(all - near) >= least_far * static_cast<double>(all))
            add("memory", "follow",
                fmt::format("{} of its {} MiB are on other nodes", grouped((all - near) >> 10U),
                            grouped(all >> 10U)));
    }

    /// Threads that do next to nothing take no core from those that work, and a fork that saves has more than
    /// one core.
    void thread_rules(const Team& team) {
        std::vector<std::string> workers;
        std::size_t aside = 0;
        for (const auto& [pattern, kind] : kinds_)
            if (is_working(kind))
                workers.push_back(pattern);
            else
                aside += kind.threads;
        std::string rules, why;
        const auto& comm = team.takers.front()->comm;
        if (team.are_threads && std::ranges::find(savers, comm) != savers.end()) {
            rules = fmt::format("\n  - {{name: {}, bind: llc}}", yaml_text(pattern_for(comm, false)));
            why = comm + " forks to save, and the fork begins with its mask: a core is too narrow; ";
            std::erase(workers, pattern_for(comm, true));
        }
        const bool are_few = aside > 0 && !workers.empty() && workers.size() <= most_names &&
                             std::ranges::find(workers, "*") == workers.end();
        if (are_few) {
            rules += fmt::format("\n  - {{name: {}}}\n  - {{name: \"*\", cpus: housekeeping, bind: set}}",
                                 yaml_list(workers));
            why += fmt::format("{} did less than {} of the work: these take no core of a queue",
                               counted(aside, "thread"), percent(least_part));
        }
        if (!rules.empty()) add("threads", rules, why);
    }

    /// Without a NIC, threads are worth keeping in one cache where they change between several.
    void compute() {
        const auto groups = topology_.llc_groups();
        const std::string first = server_.is_elsewhere          ? "its network namespace is another one"
                                  : !server_.listeners.empty()  ? "no NIC of this machine serves it"
                                  : server_.listens_on_loopback ? "it listens on loopback only"
                                                                : "it does not listen";
        if (groups.size() < 2)
            return leave(first + ", and all CPUs share a cache: there is nothing to keep together");
        std::string why = ", and its threads stay in a cache group by themselves";
        for (const auto& process : server_.processes) {
            std::set<CpuSet> seen;
            std::size_t threads = 0;
            for (const auto& thread : process.threads) {
                if (thread.busy < least_busy) continue;
                ++threads;
                for (const auto cpu : thread.cpus)
                    seen.insert(topology_.llc_of(cpu));
            }
            if (threads < 2 || seen.size() < 2) continue;
            const auto busy = busy_of(process);
            const auto cores = cores_in(groups.front());
            if (busy > static_cast<double>(cores)) {
                why = fmt::format(", and pid {} keeps {:.1f} CPUs busy, more than a cache group has",
                                  process.pid, busy);
                continue;
            }
            add("together", "llc",
                fmt::format("{} of pid {} ran in {} cache groups; together they keep {:.1f} CPUs busy, and a "
                            "group has {}",
                            counted(threads, "busy thread"), process.pid, seen.size(), busy,
                            counted(cores, "core")));
            return tell_of_settings();
        }
        leave(first + why);
    }

    void tell_of_settings() {
        for (const auto& setting : server_.settings)
            advise(setting.text.starts_with("NUMA")
                       ? told(setting) + " is about memory, and may stay"
                       : "remove " + told(setting) + ": one of the two should set masks");
    }

    void tell_of_nics(std::size_t workers) {
        for (const auto& name : nics_)
            if (const auto queues = queues_of_nic(name);
                queues > 0 && queues < workers && workers <= cores_in(topology_.online))
                advise(fmt::format("{} has {} for {}: \"ethtool -l {}\" says how many it can have", name,
                                   counted(queues, "receive queue"), counted(workers, "worker"), name));
        for (const auto& setting : seen_.interrupt_settings)
            advise(setting.is_for_irqbalance
                       ? told(setting) + " may stay: affinityd tells irqbalance which interrupts it places"
                       : "remove " + told(setting) + ": this policy places the interrupts");
    }

    [[nodiscard]] bool is_working(const ThreadKind& kind) const {
        return !seen_.has_times || kind.busy >= least_part * result_.busy;
    }

    /// Threads of the names that do the work.
    [[nodiscard]] std::size_t workers_in(const ServerProcess& process) const {
        return static_cast<std::size_t>(
            std::ranges::count_if(process.threads, [&](const ServerThread& thread) {
                return is_working(kinds_.at(pattern_for(thread.name, true)));
            }));
    }

    static double busy_of(const ServerProcess& process) {
        double busy = 0;
        for (const auto& thread : process.threads)
            busy += thread.busy;
        return busy;
    }

    /// The one that most depends on: with the most sockets, then the most processes.
    [[nodiscard]] const ServerListener* main_listener() const {
        const auto found =
            std::ranges::max_element(server_.listeners, {}, [](const ServerListener& listener) {
                return std::pair(listener.sockets, listener.pids.size());
            });
        return found == server_.listeners.end() ? nullptr : &*found;
    }

    [[nodiscard]] std::size_t cores_in(const CpuSet& cpus) const {
        return groups_of(topology_, policy::Bind::core, cpus).size();
    }

    [[nodiscard]] std::size_t nodes_with_cpus() const {
        return static_cast<std::size_t>(
            std::ranges::count_if(topology_.nodes, [](const auto& node) { return !node.cpus.empty(); }));
    }

    /// Where all of its NICs are, if there are several nodes.
    [[nodiscard]] const topology::Node* node_of_nics() const {
        const topology::Node* common = nullptr;
        for (const auto& name : nics_) {
            const auto* nic = seen_.machine.nic(name);
            const auto* node = nic != nullptr && nic->node ? topology_.node(*nic->node) : nullptr;
            if (node == nullptr || node->cpus.empty() || (common != nullptr && common != node))
                return nullptr;
            common = node;
        }
        return nodes_with_cpus() > 1 ? common : nullptr;
    }

    [[nodiscard]] std::size_t queues_of_nic(const std::string& name) const {
        const auto* nic = seen_.machine.nic(name);
        return nic == nullptr ? 0
                              : static_cast<std::size_t>(std::ranges::count(
                                    nic->queues, netdev::Direction::rx, &netdev::Queue::direction));
    }

    const SeenServers& seen_;
    const Server& server_;
    const topology::Topology& topology_;
    std::string file_;
    std::vector<std::string> nics_;            ///< whose queues this policy may place
    std::map<std::string, std::string> taken_; ///< the others, and the policies that do
    ThreadKinds kinds_;
    Suggestion result_{};
};

/// "nginx.yaml", of a name of any bytes; none is taken twice.
std::string file_for(std::string_view server, std::set<std::string, std::less<>>& taken) {
    if (server.ends_with(".service")) server.remove_suffix(std::string_view(".service").size());
    std::string stem;
    for (const char c : server.substr(0, 64)) {
        const bool is_plain =
            is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
        if (is_plain && !(stem.empty() && c == '.'))
            stem += c;
        else if (!stem.empty() && !stem.ends_with('-'))
            stem += '-';
    }
    if (stem.empty()) stem = "server";
    auto name = stem;
    for (unsigned number = 2; !taken.insert(name).second; ++number)
        name = fmt::format("{}-{}", stem, number);
    return name + ".yaml";
}

/// Lines of at most 100 bytes where words allow it, each a comment.
std::string comment(std::string_view text) {
    constexpr std::size_t width = 100;
    std::string lines, line = "#";
    const auto shown = escaped(text);
    for (const auto word : split_words(shown)) {
        if (line.size() > 1 && line.size() + 1 + word.size() > width) {
            lines += line + "\n";
            line = "#  ";
        }
        line += " " + std::string(word);
    }
    return lines + line + "\n";
}

} // namespace

double busy_cpus(const Server& server) {
    double busy = 0;
    for (const auto& process : server.processes)
        for (const auto& thread : process.threads)
            busy += thread.busy;
    return busy;
}

bool is_idle(const SeenServers& seen, const Server& server) {
    return seen.has_times && busy_cpus(server) < least_busy &&
           server.reads_per_second.value_or(0) < least_reads;
}

std::vector<Suggestion> suggest(const SeenServers& seen) {
    auto taken = seen.taken_names;
    auto nics = seen.taken_nics;
    std::vector<Suggestion> suggestions;
    for (const auto& server : seen.servers) {
        auto names = taken;
        const auto file = file_for(server.name, names);
        const auto& one = suggestions.emplace_back(Proposing(seen, server, file, nics).run());
        if (one.file.empty()) continue;
        taken = std::move(names);
        if (std::ranges::find(one.lines, "affinity", &SuggestedLine::key) != one.lines.end())
            for (const auto& nic : server.nics)
                nics.try_emplace(nic, file.substr(0, file.rfind('.')));
    }
    return suggestions;
}

std::string file_text(const Suggestion& suggestion) {
    auto text =
        comment(fmt::format("{}: {}, {:.1f} CPUs busy, as affinityctl suggest saw it", suggestion.server,
                            counted(suggestion.pids.size(), "process", "processes"), suggestion.busy));
    for (const auto& advice : suggestion.advice)
        text += comment("Beside this file: " + advice + ".");
    for (const auto& line : suggestion.lines) {
        if (!line.reason.empty()) text += comment(line.reason);
        text += line.key + ":" + (line.value.starts_with('\n') ? "" : " ") + line.value + "\n";
    }
    return text;
}

} // namespace affinityctl::survey
