// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/reading/servers.hpp"

#include "affinityctl/client/call.hpp"
#include "affinityctl/locality/watch.hpp"
#include "affinityctl/present/output.hpp"
#include "affinityctl/reading/machine.hpp"
#include "affinityctl/survey/doctor.hpp"
#include "base/text.hpp"
#include "host/self.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/sockets.hpp"
#include "policy/cgroup_path.hpp"
#include "policy/policy.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <tuple>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace affinityctl {

namespace {

using affinityd::parse_number;
using affinityd::split_words;
using affinityd::host::Dir;
using affinityd::host::Root;
namespace accounting = affinityd::accounting;
namespace inventory = affinityd::inventory;
namespace locality = affinityd::locality;
using FoundSettings = std::vector<survey::FoundSetting>;

// clang-format off
/// Folders of units, in the order of systemd.unit(5).
constexpr const char* systemd_folders[] = {
    "etc/systemd/system.control", "run/systemd/system.control", "run/systemd/transient", "etc/systemd/system",
    "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system"};
constexpr const char* link_folders[] = {"etc/systemd/network", "run/systemd/network", "usr/lib/systemd/network"};
/// Folders of scripts that run at boot, or when a link comes up.
constexpr const char* script_folders[] = {
    "etc/network/if-up.d", "etc/network/if-pre-up.d", "etc/networkd-dispatcher/routable.d",
    "etc/networkd-dispatcher/configured.d", "etc/NetworkManager/dispatcher.d", "etc/cron.d", "etc/systemd/system"};
constexpr std::string_view unit_keys[] = {"CPUAffinity=", "AllowedCPUs=", "StartupAllowedCPUs=", "NUMAMask=", "NUMAPolicy="};
/// Scripts and files by which interrupts are placed.
constexpr std::string_view script_words[] = {"set_irq_affinity", "smp_affinity", "mlnx_affinity", "sfcaffinity"};
constexpr std::string_view irqbalance_words[] = {"IRQBALANCE_BANNED_", "banirq", "hintpolicy"};
// clang-format on

/// FoundSettings in files of this machine or a recording that are about affinity.
class SettingFiles {
  public:
    explicit SettingFiles(const Root& root) {
        const auto top = Dir::open(AT_FDCWD, root.path(), false);
        if (top) top_ = Dir::open(top->fd(), ".", !root.is_live()).value_or(Dir());
    }

    /// Settings of a unit's file, of its template's, and of what is dropped in.
    [[nodiscard]] FoundSettings of_unit(const std::string& unit) const {
        std::vector<std::string> names{unit};
        if (const auto at = unit.find('@'); at != std::string::npos)
            names.push_back(unit.substr(0, at + 1) + unit.substr(unit.rfind('.')));
        FoundSettings settings;
        const auto read = [&](const std::string& file) {
            each_line(file, [&](std::string_view line) {
                for (const auto key : unit_keys)
                    if (line.starts_with(key)) settings.push_back({std::string(line), "/" + file});
                if (auto tool = affinity_tool(line); !tool.empty())
                    settings.push_back({std::move(tool), "/" + file});
            });
        };
        for (const auto& name : names) {
            bool is_found = false; // the first of its name counts
            for (const std::string folder : systemd_folders) {
                if (!is_found && top_.exists(folder + "/" + name)) {
                    is_found = true;
                    read(folder + "/" + name);
                }
                for (const auto& file : list(folder + "/" + name + ".d", ".conf"))
                    read(file);
            }
        }
        return settings;
    }

    [[nodiscard]] FoundSettings of_interrupts() const {
        FoundSettings settings;
        for (const auto* folder : link_folders)
            for (const auto& file : list(folder, ".link"))
                each_line(file, [&](std::string_view line) {
                    if (line.starts_with("IRQAffinity")) settings.push_back({std::string(line), "/" + file});
                });
        std::vector<std::string> scripts{"etc/rc.local", "etc/crontab"};
        for (const std::string folder : script_folders)
            std::ranges::copy(list(folder, folder.ends_with("system") ? ".service" : ""),
                              std::back_inserter(scripts));
        for (const auto& file : scripts)
            for (const auto word : script_words)
                if (has_word(file, word)) settings.push_back({std::string(word), "/" + file});
        for (const auto word : irqbalance_words)
            if (const std::string file = "etc/default/irqbalance"; has_word(file, word))
                settings.push_back({std::string(word), "/" + file, true});
        return settings;
    }

  private:
    [[nodiscard]] std::vector<std::string> list(const std::string& folder, std::string_view ending) const {
        std::vector<std::string> files;
        for (const auto& name : top_.list(folder).value_or(std::vector<std::string>{}))
            if (name.ends_with(ending)) files.push_back(folder + "/" + name);
        return files;
    }

    template <class See>
    void each_line(const std::string& file, const See& see) const {
        constexpr std::size_t longest = 64U << 10;
        const auto text = top_.read(file, longest).value_or(std::nullopt).value_or("");
        for (const auto line : affinityd::split(text, '\n'))
            if (const auto plain = affinityd::trim_text(line); !plain.starts_with('#')) see(plain);
    }

    [[nodiscard]] bool has_word(const std::string& file, std::string_view word) const {
        bool has = false;
        each_line(file,
                  [&](std::string_view line) { has = has || line.find(word) != std::string_view::npos; });
        return has;
    }

    /// taskset or numactl with its options, of a line that starts a program with it; "": it does not. No
    /// arguments of the program: they may hold secrets.
    static std::string affinity_tool(std::string_view line) {
        if (!line.starts_with("ExecStart=")) return "";
        line.remove_prefix(std::string_view("ExecStart=").size());
        std::string text;
        for (const auto word : split_words(line)) {
            const auto name = word.substr(word.find_last_of("/-@:+!=") + 1);
            const bool is_option = word.starts_with('-') ||
                                   word.find_first_not_of("0123456789abcdefx,-:") == std::string_view::npos;
            if (text.empty() && (name == "taskset" || name == "numactl"))
                text = name;
            else if (!text.empty() && is_option)
                text += " " + std::string(word);
            else
                break;
        }
        return text;
    }

    Dir top_;
};

RunRecords read_run_records(const Root& root) {
    RunRecords records;
    for (const int pid : inventory::list_pids(root).value_or(std::vector<int>{})) {
        const auto scan = inventory::ProcessScan::open(root, pid).value_or(std::nullopt);
        if (!scan || scan->is_kernel()) continue;
        for (const auto& thread :
             inventory::read_threads(root, pid).value_or(std::vector<inventory::Thread>{}))
            if (const auto record = inventory::read_run_record(root, pid, thread.id.tid))
                records[{thread.id.tid, record->start_time}] = *record;
    }
    return records;
}

/// Clock ticks since boot when a recording was made: the time of all CPUs, by their number; 0: not known.
std::uint64_t recorded_ticks(const Root& root, std::size_t cpus) {
    const auto stat = root.proc().text("stat").value_or("");
    const auto words = split_words(std::string_view(stat).substr(0, stat.find('\n')));
    constexpr std::size_t guest = 9; // guests' time is in user time, too: proc_stat(5)
    std::uint64_t ticks = 0;
    for (std::size_t at = 1; at < std::min(words.size(), guest); ++at)
        ticks += parse_number<std::uint64_t>(words[at]).value_or(0);
    return cpus == 0 ? 0 : ticks / cpus;
}

/// Reads what suggest() wants of a machine.
class ServerReading {
  public:
    ServerReading(StillMachine& still, const Root& root, Watched watched)
        : still_(still), root_(root), watched_(std::move(watched)), near_(still.machine().topology),
          ticks_(root.is_live() ? affinityd::host::ticks_since_boot()
                                : recorded_ticks(root, still.machine().topology.online.count())),
          seen_{.machine = still.machine(), .servers = {}, .has_times = ticks_ > 0} {}

    ReadServers read(std::set<std::string, std::less<>> taken, const IsMeant& is_meant) {
        seen_.taken_names = std::move(taken);
        group_processes();
        read_listeners();
        read_usage();
        find_taken_nics();
        std::erase_if(seen_.servers, [&](const survey::Server& server) { return !is_meant(server); });
        seen_.can_steer = root_.is_live() ? watched_.has_bpf : records_bpf();
        const SettingFiles files(root_);
        seen_.interrupt_settings = files.of_interrupts();
        for (auto& server : seen_.servers) {
            read_locality(server);
            if (!survey::is_idle(seen_, server)) read_more(server, files);
        }
        std::ranges::stable_sort(seen_.servers, std::ranges::greater{}, survey::busy_cpus);
        return {std::move(seen_), std::move(watched_.notes)};
    }

  private:
    /// Interfaces whose queues policies place already: those that these name, or that serve their processes.
    void find_taken_nics() {
        for (const auto& target : still_.placements().queues)
            if (!target.nic.empty() && target.off.empty())
                seen_.taken_nics.try_emplace(target.nic, target.policy);
        for (const auto& policy : still_.policies().policies)
            for (const auto& server : seen_.servers)
                if (server.policy == policy.name && needs_sockets(policy))
                    for (const auto& nic : server.nics)
                        seen_.taken_nics.try_emplace(nic, policy.name);
    }

    /// The recorded kernel can steer: affinityd.policy(5), STEERING.
    [[nodiscard]] bool records_bpf() const {
        constexpr std::pair<unsigned, unsigned> first{5, 11};
        const auto text = root_.proc().text("version").value_or("");
        const auto words = split_words(text); // "Linux version 6.12.0-1-amd64 (...) ..."
        if (words.size() < 3) return true;
        const auto parts = affinityd::split(words[2], '.');
        if (parts.size() < 2) return true;
        const auto minor = parts[1].substr(0, parts[1].find_first_not_of("0123456789"));
        return std::pair(parse_number<unsigned>(parts[0]).value_or(first.first),
                         parse_number<unsigned>(minor).value_or(first.second)) >= first;
    }

    /// The service of a process, or its program.
    void group_processes() {
        std::map<std::tuple<std::string, std::string, std::string, std::string>, std::size_t> places;
        std::map<int, std::size_t> place_of; // pid
        for (const auto& process : still_.processes()) {
            const auto& facts = process.scan.facts();
            if (process.scan.is_kernel() || process.scan.id().tid == ::getpid()) continue;
            survey::Server one;
            const auto names = affinityd::policy::system_cgroup_names(facts.cgroup());
            const auto container = affinityd::policy::parse_cgroup_path(facts.cgroup());
            one.is_in_container = !container.container_id.empty();
            if (one.is_in_container && still_.cpuset(process) != nullptr)
                one.manager = facts.cgroup().find("kubepods") != std::string::npos ? "the kubelet"
                              : container.container_runtime.empty()                ? "a container manager"
                                                                    : container.container_runtime;
            if (!one.is_in_container && names.unit.ends_with(".service") && !names.unit.starts_with("user@"))
                one.name = one.unit = names.unit;
            else if (one.exe = facts.exe(); one.exe.empty())
                continue;
            // An interpreter is several programs.
            const auto base = one.exe.substr(one.exe.rfind('/') + 1);
            if (one.unit.empty()) one.name = base.starts_with(facts.comm()) ? base : facts.comm();
            // A master may give its workers another user.
            const auto parent = place_of.find(process.scan.parent());
            const auto* master = parent == place_of.end() ? nullptr : &seen_.servers[parent->second];
            const bool is_worker = master != nullptr && one.unit.empty() && master->unit.empty() &&
                                   master->exe == one.exe && master->name == one.name;
            const auto user = one.unit.empty() ? facts.user() : "";
            const auto place =
                is_worker ? parent->second
                          : places.try_emplace({one.unit, one.exe, one.name, user}, seen_.servers.size())
                                .first->second;
            place_of[process.scan.id().tid] = place;
            if (place == seen_.servers.size()) seen_.servers.push_back(std::move(one));
            auto& server = seen_.servers[place];
            if (process.policy && server.policy.empty())
                server.policy = still_.policies().policies[*process.policy].name;
            if (server.unit.empty()) server.users.insert(facts.user());
            server.processes.push_back(process_of(process));
        }
    }

    survey::ServerProcess process_of(const SeenProcess& process) const {
        survey::ServerProcess one{.pid = process.scan.id().tid,
                                  .parent = process.scan.parent(),
                                  .comm = process.scan.comm(),
                                  .threads = {}};
        for (const auto& thread : process.threads) {
            survey::ServerThread seen{.name = thread.comm, .allowed = thread.allowed};
            if (const auto now = inventory::read_run_record(root_, one.pid, thread.id.tid)) {
                const auto before = watched_.before.find({thread.id.tid, now->start_time});
                const bool is_known = before != watched_.before.end();
                const auto run = now->run_ns - (is_known ? before->second.run_ns : 0);
                const auto ticks = static_cast<double>(ticks_ - std::min(ticks_, now->start_time));
                const auto seconds =
                    root_.is_live() ? watched_.seconds : ticks / 100; // USER_HZ, in all recordings
                if (seconds > 0) seen.busy = static_cast<double>(run) / 1e9 / seconds;
                if (is_known) seen.cpus.push_back(static_cast<unsigned>(before->second.cpu));
                seen.cpus.push_back(static_cast<unsigned>(now->cpu));
            }
            one.threads.push_back(std::move(seen));
        }
        return one;
    }

    /// Sockets of this network namespace that listen, loopback aside.
    void read_listeners() {
        const auto table = inventory::read_socket_table(root_, {.wanted = inventory::Wanted::listeners});
        if (!table) return watched_.notes.push_back("who listens is not known: " + table.error().message);
        using Address = std::pair<inventory::IpAddress, std::uint16_t>;
        for (auto& server : seen_.servers) {
            std::map<Address, survey::ServerListener> found;
            std::map<Address, std::set<std::uint64_t>> sockets;
            std::set<std::uint16_t> udp;
            for (const auto& process : server.processes) {
                constexpr std::size_t most = 4096; // descriptors of a process
                const auto folder = root_.proc().dir(std::to_string(process.pid));
                if (!folder) continue;
                for (const auto inode :
                     inventory::socket_inodes(*folder, most).value_or(std::vector<std::uint64_t>{})) {
                    const auto* socket = table->find(inode);
                    if (socket == nullptr || !socket->listens()) continue;
                    const bool is_loopback = socket->local.is_ipv4() ? socket->local.bytes[12] == 127
                                                                     : socket->local.to_text() == "::1";
                    if (is_loopback) {
                        server.listens_on_loopback = true;
                        continue;
                    }
                    if (socket->protocol == inventory::Protocol::udp) {
                        udp.insert(socket->port);
                        continue;
                    }
                    const Address address(socket->local, socket->port);
                    found[address].port = socket->port;
                    found[address].pids.insert(process.pid);
                    sockets[address].insert(inode);
                }
            }
            server.is_elsewhere = found.empty() && root_.is_live() &&
                                  !inventory::shares_network_namespace(root_, server.processes.front().pid);
            for (auto& [address, listener] : found) {
                listener.sockets = sockets[address].size();
                listener.has_udp = udp.contains(listener.port);
                server.listeners.push_back(std::move(listener));
            }
        }
    }

    /// The interfaces that serve processes, by their sockets. A recording has no addresses: all that are up.
    void read_usage() {
        if (!root_.is_live()) {
            for (const auto& nic : still_.machine().nics)
                for (auto& server : seen_.servers)
                    if (nic.up && !nic.device.empty() && !server.listeners.empty())
                        server.nics.push_back(nic.name);
            return;
        }
        accounting::NicUsage::Request request{.nics = still_.machine().nics};
        for (std::size_t i = 0; i < seen_.servers.size(); ++i) {
            request.policies.push_back({.name = std::to_string(i), .is_auto = true});
            for (const auto& process : still_.processes())
                if (!seen_.servers[i].listeners.empty() && !process.threads.empty() &&
                    std::ranges::find(seen_.servers[i].processes, process.scan.id().tid,
                                      &survey::ServerProcess::pid) != seen_.servers[i].processes.end())
                    request.processes.push_back({.id = process.threads.front().id, .policy = i});
        }
        affinityctl::read_usage(
            root_,
            std::move(request), [&](std::size_t server) -> auto& { return seen_.servers[server].nics; });
    }

    void read_locality(survey::Server& server) {
        if (!watched_.reads || watched_.reads->seconds <= 0) return;
        const auto figures = locality::figures_of(*watched_.reads, near_, [&](int pid) {
            return std::ranges::find(server.processes, pid, &survey::ServerProcess::pid) !=
                   server.processes.end();
        });
        server.reads_per_second = static_cast<double>(figures.total.reads) / watched_.reads->seconds;
        if (figures.total.reads > figures.total.unknown) server.local = figures.total.same.core;
    }

    /// Reads what takes long, of servers that work.
    void read_more(survey::Server& server, const SettingFiles& files) const {
        if (!server.unit.empty()) server.settings = files.of_unit(server.unit);
        constexpr std::size_t most = 16; // processes
        std::vector<int> pids;
        for (const auto& process : server.processes) {
            server.counts_cpus = server.counts_cpus || process.comm == "java";
            if (pids.size() < most) pids.push_back(process.pid);
        }
        server.counts_cpus = server.counts_cpus || !counting_library(root_, pids).empty();
        if (still_.machine().topology.nodes.size() > 1)
            for (const int pid : pids)
                for (const auto& [node, kib] :
                     survey::private_memory(root_.proc().text(fmt::format("{}/numa_maps", pid)).value_or("")))
                    server.private_kib[node] += kib;
    }

    StillMachine& still_;
    const Root& root_;
    Watched watched_;
    locality::Nearness near_;
    std::uint64_t ticks_;
    survey::SeenServers seen_;
};

} // namespace

std::string counting_library(const Root& root, const std::vector<int>& pids) {
    for (const int pid : pids) {
        const auto maps = root.proc().text(fmt::format("{}/maps", pid)).value_or("");
        for (const char* library : {"libjvm", "libgomp", "libomp", "libiomp5"})
            if (maps.find(fmt::format("/{}.so", library)) != std::string::npos) return library;
    }
    return {};
}

Watched watch_servers(const Root& root, std::chrono::milliseconds time) {
    Watched watched{.before = read_run_records(root), .reads = {}, .notes = {}};
    const auto begun = std::chrono::steady_clock::now();
    ProgressLine line("watching");
    const auto wait = [&](std::chrono::milliseconds left) {
        line.go_on();
        std::this_thread::sleep_for(left);
        return false;
    };
    LocalityWatch watch(root, {}, [] { return nlohmann::json(); });
    if (const auto can = watch.begin(false)) {
        watch.run(time, wait);
        if (auto seen = watch.take()) watched.reads = std::move(*seen);
    } else {
        watched.has_bpf = false;
        watched.notes.push_back("reads are not counted here: " + can.error().message);
        for (constexpr std::chrono::milliseconds step(250); std::chrono::steady_clock::now() - begun < time;)
            wait(std::min(step, time));
    }
    watched.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    return watched;
}

ReadServers read_servers(StillMachine& still, const Root& root, Watched watched,
                         std::set<std::string, std::less<>> taken, const IsMeant& is_meant) {
    return ServerReading(still, root, std::move(watched)).read(std::move(taken), is_meant);
}

} // namespace affinityctl
