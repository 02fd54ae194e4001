// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/reading/machine.hpp"

#include "affinityctl/present/document.hpp"
#include "base/text.hpp"
#include "host/self.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/process_files.hpp"
#include "inventory/sockets.hpp"
#include "policy/cgroup_path.hpp"
#include "policy/policy.hpp"
#include "policy/reader.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::parse_number;
using affinityd::split_words;
using affinityd::host::Root;
using affinityd::policy::Model;
using affinityd::policy::yaml_text;
using nlohmann::json;
namespace accounting = affinityd::accounting;
namespace inventory = affinityd::inventory;
namespace planner = affinityd::planner;

/// Interrupts that irqbalance's arguments tell it to leave alone: irqbalance(1), --banirq.
std::set<unsigned> spared_by(const std::string& arguments) {
    std::set<unsigned> irqs;
    bool is_next = false;
    for (auto word : split_words(arguments)) {
        constexpr std::string_view option = "--banirq=";
        if (word.starts_with(option)) word.remove_prefix(option.size()), is_next = true;
        if (const auto irq = is_next ? parse_number<unsigned>(word) : std::nullopt) irqs.insert(*irq);
        is_next = word == "--banirq" || word == "-i";
    }
    return irqs;
}

/// The CPUs that the settings of a TuneD profile isolate, as they are written; "": none.
std::string isolated_cores(const Root& root, std::string_view profiles) {
    constexpr std::string_view key = "isolated_cores";
    std::string cores;
    for (const auto profile : split_words(profiles)) {
        if (profile.find('/') != std::string_view::npos) continue;
        for (const char* form :
             {"tuned/{}-variables.conf", "tuned/{}/tuned.conf", "tuned/profiles/{}/tuned.conf"}) {
            const auto text = root.etc().text(fmt::format(fmt::runtime(form), profile)).value_or("");
            for (const auto line : affinityd::split(text, '\n'))
                if (const auto equals = line.find('='); line.starts_with(key) &&
                                                        equals != std::string_view::npos &&
                                                        affinityd::trim_text(line.substr(0, equals)) == key)
                    cores = affinityd::trim_text(line.substr(equals + 1));
        }
    }
    return cores;
}

/// Reads what examine() wants of a machine.
class Reading {
  public:
    Reading(StillMachine& still, const Root& root)
        : still_(still), root_(root), seen_{.policies = still.policies(),
                                            .machine = still.machine(),
                                            .placements = still.placements()} {}

    ReadMachine read(const json& status) {
        for (std::size_t i = 0; i < still_.policies().policies.size(); ++i)
            seen_.nics.push_back(still_.nics(i));
        read_processes();
        // The daemon tells irqbalance what is under policy.
        for (const auto& writer : list(status, "other_writers"))
            if (text(writer, "name") == "irqbalance" && writer.value("keeps_off", false))
                seen_.irqbalance = 0;
        read_listeners();
        if (root_.is_live()) read_usage();
        if (root_.sys().text("kernel/sched_ext/state") == "enabled")
            seen_.scheduler = root_.sys().text("kernel/sched_ext/root/ops").value_or("that is loaded");
        seen_.tuned_profile = root_.etc().text("tuned/active_profile").value_or("");
        seen_.tuned_cores = isolated_cores(root_, seen_.tuned_profile);
        read_cpus();
        return {std::move(seen_), lacks_memory_};
    }

  private:
    void read_processes() {
        const bool has_nodes = still_.machine().topology.nodes.size() > 1;
        for (const auto& process : still_.processes()) {
            const auto& scan = process.scan;
            if (!scan.is_kernel() && scan.facts().uid() == 0) {
                if (scan.comm() == "irqbalance") {
                    seen_.irqbalance = scan.id().tid;
                    seen_.spared_irqs = spared_by(scan.facts().cmdline());
                }
                if (scan.comm() == "tuned") seen_.tuned = scan.id().tid;
            }
            auto* group = scan.is_kernel() ? nullptr : group_of(process);
            survey::ExaminedProcess examined{
                .pid = scan.id().tid, .parent = scan.parent(), .comm = scan.comm()};
            std::map<int, affinityd::CpuSet> placed;
            still_.plan(process, [&](const auto& thread, const planner::ThreadPlan& plan) {
                if (!plan.target) return;
                examined.wanted |= plan.target->mask;
                placed[thread.id.tid] = plan.target->mask;
            });
            for (const auto& thread : group == nullptr ? decltype(process.threads){} : process.threads) {
                const auto record = inventory::read_run_record(root_, examined.pid, thread.id.tid);
                const auto wanted = placed.find(thread.id.tid);
                group->threads.push_back({wanted == placed.end() ? thread.allowed : wanted->second,
                                          record ? static_cast<unsigned>(record->cpu) : ~0U});
            }
            if (!process.policy) continue;
            examined.policy = *process.policy;
            examined.threads = process.threads;
            if (has_nodes) {
                for (const auto& thread : process.threads) {
                    const auto record = inventory::read_run_record(root_, examined.pid, thread.id.tid);
                    const bool counts = record && placed.contains(thread.id.tid) && !is_new(thread);
                    examined.last_cpus.push_back(counts ? static_cast<unsigned>(record->cpu) : ~0U);
                }
                const auto maps = root_.proc().text(fmt::format("{}/numa_maps", examined.pid));
                lacks_memory_ = lacks_memory_ || (!maps && !root_.is_live() && !scan.is_kernel());
                examined.private_kib = survey::private_memory(maps.value_or(""));
            }
            seen_.processes.push_back(std::move(examined));
        }
    }

    /// The container of a process, or else its control group; nullptr: that of all, or one of a pod that only
    /// holds its namespaces.
    survey::ExaminedGroup* group_of(const SeenProcess& process) {
        using Kind = survey::ExaminedGroup::Kind;
        const auto& path = process.scan.facts().cgroup();
        auto names = affinityd::policy::parse_cgroup_path(path);
        const bool is_container = !names.container_id.empty();
        if (path.empty() || path == "/" || (is_container && process.scan.comm() == "pause")) return nullptr;
        const auto [place, is_new] =
            places_.try_emplace(is_container ? names.container_id : path, seen_.groups.size());
        if (!is_new) return &seen_.groups[place->second];
        survey::ExaminedGroup group;
        if (is_container) {
            const auto id = names.container_id.substr(0, 12);
            group.kind = Kind::container;
            group.name = names.container_runtime.empty() ? id : names.container_runtime + ":" + id;
            group.match = fmt::format("{{container: {}}}", yaml_text(id));
            // "/kubepods.slice/kubepods-podU.slice/...", or "/kubepods/podU/...": kubelet has two drivers.
            for (const auto part : affinityd::split(path, '/'))
                if (part.starts_with("pod") || part.find("-pod") != std::string_view::npos) {
                    if (path.find("kubepods") == std::string::npos) break;
                    group.kind = Kind::pod;
                    group.name = part.ends_with(".slice") ? part.substr(0, part.rfind('.')) : part;
                    break;
                }
        } else if (const auto unit = affinityd::policy::system_cgroup_names(path).unit; !unit.empty()) {
            group.kind =
                unit.ends_with(".service") && !unit.starts_with("user@") ? Kind::service : Kind::other;
            group.name = unit;
            group.match = fmt::format("{{unit: {}}}", yaml_text(unit));
        } else {
            group.name = path;
            group.match = fmt::format("{{cgroup: {}}}", yaml_text(path));
        }
        const auto* cpuset = still_.cpuset(process);
        group.cpus = still_.machine().topology.online;
        if (cpuset != nullptr) group.cpus &= *cpuset;
        seen_.groups.push_back(std::move(group));
        return &seen_.groups.back();
    }

    /// The daemon may be about to place it: `settle` is at most a minute.
    [[nodiscard]] bool is_new(const inventory::Thread& thread) const {
        using affinityd::host::ticks_a_second, affinityd::host::ticks_since_boot;
        return root_.is_live() && thread.id.start_time + 60 * ticks_a_second() > ticks_since_boot();
    }

    /// TCP ports with one socket alone that processes under policy have open.
    void read_listeners() {
        const auto table = inventory::read_socket_table(root_, {.wanted = inventory::Wanted::listeners});
        if (!table) return;
        std::map<std::uint16_t, std::vector<std::uint32_t>> inodes;
        for (const auto& socket : table->sockets)
            if (socket.protocol == inventory::Protocol::tcp && socket.listens())
                inodes[socket.port].push_back(socket.inode);
        std::map<std::uint64_t, survey::ExaminedListener> alone;
        for (const auto& [port, sockets] : inodes)
            if (sockets.size() == 1) alone[sockets.front()].port = port;
        constexpr std::size_t most = 4096; // descriptors of a process
        for (const auto& process : seen_.processes) {
            const auto& policy = still_.policies().policies[process.policy];
            const auto folder = root_.proc().dir(std::to_string(process.pid));
            if (policy.model != Model::full || !folder) continue;
            for (const auto inode :
                 inventory::socket_inodes(*folder, most).value_or(std::vector<std::uint64_t>{}))
                if (const auto found = alone.find(inode); found != alone.end())
                    found->second.pids.push_back(process.pid);
        }
        for (auto& [inode, listener] : alone)
            if (listener.pids.size() > 1) seen_.listeners.push_back(std::move(listener));
    }

    /// The interfaces that serve processes of policies that name none, by their sockets.
    void read_usage() {
        accounting::NicUsage::Request request{.nics = still_.machine().nics};
        for (const auto& policy : still_.policies().policies)
            request.policies.push_back({.name = policy.name, .is_auto = needs_sockets(policy)});
        for (const auto& process : seen_.processes)
            if (needs_sockets(still_.policies().policies[process.policy]) && !process.threads.empty())
                request.processes.push_back({.id = process.threads.front().id, .policy = process.policy});
        affinityctl::read_usage(
            root_, std::move(request), [&](std::size_t policy) -> auto& { return seen_.nics[policy]; });
    }

    void read_cpus() {
        const auto& sys = root_.sys();
        const auto& online = still_.machine().topology.online;
        for (const auto cpu : online) {
            const auto value = [&](const char* name) {
                return sys.text(fmt::format("devices/system/cpu/cpu{}/cpufreq/{}", cpu, name)).value_or("");
            };
            if (auto governor = value("scaling_governor"); !governor.empty())
                seen_.frequencies[cpu] = {std::move(governor), value("scaling_driver"),
                                          value("energy_performance_preference")};
        }
        for (unsigned state = 0; !online.empty(); ++state) {
            const auto folder =
                fmt::format("devices/system/cpu/cpu{}/cpuidle/state{}/", online.first(), state);
            const auto name = sys.text(folder + "name");
            if (!name) break;
            if (sys.number(folder + "disable").value_or(0) == 0)
                seen_.idle_states.push_back(
                    {*name,
                     static_cast<std::uint64_t>(std::max(0LL, sys.number(folder + "latency").value_or(0))),
                     static_cast<std::uint64_t>(std::max(0LL, sys.number(folder + "usage").value_or(0)))});
        }
        const auto stat = root_.proc().text("stat").value_or("");
        const auto words = split_words(std::string_view(stat).substr(0, stat.find('\n')));
        constexpr std::size_t stolen = 8, guest = 9; // guests' time is in user time, too: proc_stat(5)
        for (std::size_t at = 1; at < std::min(words.size(), guest); ++at)
            seen_.cpu_time += parse_number<std::uint64_t>(words[at]).value_or(0);
        if (words.size() > stolen) seen_.stolen_time = parse_number<std::uint64_t>(words[stolen]).value_or(0);
    }

    StillMachine& still_;
    const Root& root_;
    survey::Examined seen_;
    std::map<std::string, std::size_t> places_; ///< of groups, by container or path
    bool lacks_memory_ = false;
};

} // namespace

void read_usage(const Root& root, accounting::NicUsage::Request request, const NicsOf& nics_of) {
    if (request.processes.empty()) return;
    const auto asked = request.processes;
    accounting::NicUsage usage(root);
    usage.begin(std::move(request));
    while (!usage.step([] { return false; }))
        ;
    for (const auto& process : asked)
        if (const auto found = usage.result().processes.find(process.id);
            found != usage.result().processes.end())
            for (const auto& name : found->second.nics)
                if (auto& nics = nics_of(process.policy); std::ranges::find(nics, name) == nics.end())
                    nics.push_back(name);
}

ReadMachine read_machine(StillMachine& still, const Root& root, const json& status) {
    return Reading(still, root).read(status);
}

} // namespace affinityctl
