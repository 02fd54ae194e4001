// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "machine/machine.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace affinityctl::survey {

/// A thread, as it was seen for a while.
struct ServerThread {
    std::string name;
    affinityd::CpuSet allowed;
    double busy = 0;              ///< CPU time by time: 1 is one CPU
    std::vector<unsigned> cpus{}; ///< where it ran, or had run last, at each look
};

struct ServerProcess {
    int pid = 0, parent = 0;
    std::string comm;
    std::vector<ServerThread> threads;
};

/// An address and port on which TCP is listened, loopback aside.
struct ServerListener {
    std::uint16_t port = 0;
    std::size_t sockets = 1; ///< of this address and port: more than one have SO_REUSEPORT
    std::set<int> pids{};    ///< that have any of them open
    bool has_udp = false;    ///< UDP has the port, too
};

/// A setting of another program's that is about affinity.
struct FoundSetting {
    std::string text;               ///< "CPUAffinity=0-3"
    std::string file;               ///< "/etc/systemd/system/nginx.service.d/cpus.conf"
    bool is_for_irqbalance = false; ///< which affinityd talks to itself
};

/// Processes that one policy would be for: those of a service, or of a program.
struct Server {
    std::string name; ///< "nginx.service"; of a program: "qemu-system-x86_64"
    std::string unit; ///< "": none
    std::string exe;
    std::set<std::string> users{}; ///< of a program
    bool is_in_container = false;
    std::string manager{}; ///< that writes its cpuset: "the kubelet", "docker"; "": none, or it has all CPUs
    bool is_elsewhere = false;        ///< in another network namespace
    bool listens_on_loopback = false; ///< also where it listens nowhere else
    std::string policy;               ///< that has it already; "": none
    std::vector<ServerProcess> processes;
    std::vector<ServerListener> listeners{};
    std::vector<std::string> nics{}; ///< that serve it
    bool counts_cpus = false;        ///< again and again, as the JVM does: affinityd.policy(5)
    std::optional<double> reads_per_second{}, local{}; ///< of TCP; 0..1 of them on the core of arrival
    std::map<unsigned, std::uint64_t> private_kib{};   ///< memory of its own, by node
    std::vector<FoundSetting> settings{};              ///< of its unit
};

/// A machine and its servers. Empty: not read. References must outlive it.
struct SeenServers {
    const affinityd::machine::Machine& machine;
    std::vector<Server> servers;
    bool has_times = true;                            ///< the threads' CPU time is known
    std::vector<FoundSetting> interrupt_settings{};   ///< of interrupts
    std::set<std::string, std::less<>> taken_names{}; ///< of policies
    std::map<std::string, std::string> taken_nics{};  ///< interface -> policy that places its queues
    bool can_steer = true;                            ///< BPF is allowed here
};

/// A key of a policy, its value as the file has it, and the reason with the figures seen.
struct SuggestedLine {
    std::string key, value, reason;
};

/// A policy for a server, or why it is not worth one.
struct Suggestion {
    std::string server;
    std::vector<int> pids;
    double busy = 0;  ///< CPUs
    std::string file; ///< "nginx.yaml"; "": no policy
    std::vector<SuggestedLine> lines{};
    std::vector<std::string> advice{}; ///< on the settings of the server and of other programs
    std::string why_not{};
    bool is_idle = false;
};

/// CPUs that its threads keep busy.
[[nodiscard]] double busy_cpus(const Server& server);
/// True: the server does next to nothing.
[[nodiscard]] bool is_idle(const SeenServers& seen, const Server& server);

/// A suggestion for each server, in their order. Pure.
[[nodiscard]] std::vector<Suggestion> suggest(const SeenServers& seen);

/// The commented file. Names of tasks and files may be any bytes: none leaves its line, or its quotes.
[[nodiscard]] std::string file_text(const Suggestion& suggestion);

} // namespace affinityctl::survey
