// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/cases.hpp"
#include "affinityctl/present/document.hpp"
#include "base/text.hpp"
#include "policy/pattern.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

namespace affinityctl {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// The number of a user or group, whose name goes into the table: passwd(5) or group(5).
std::string number_of(const std::string& name, std::string& table) {
    if (name.empty() || affinityd::is_digit(name[0])) return name.empty() ? "0" : name;
    const auto number = 60'000 + table.size(); // grows with each name
    table += fmt::format("{}:x:{}:{}::/:\n", name, number, number);
    return std::to_string(number);
}

} // namespace

MadeUpProcesses::MadeUpProcesses() {
    made_.folder = fs::temp_directory_path() / "affinityctl-test-XXXXXX";
    if (::mkdtemp(made_.folder.data()) == nullptr)
        throw std::system_error(errno, std::generic_category(), made_.folder);
}

/// From here on the destructor removes the folder, also after an exception.
MadeUpProcesses::MadeUpProcesses(const json& kinds, const affinityd::CpuSet& online) : MadeUpProcesses() {
    sockets_ =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode\n";
    for (const auto& kind : kinds)
        for (int i = 0; i < kind.value("count", 1); ++i)
            add(kind, kind.value("cpuset", online.to_list()));
    put("proc/net/tcp", sockets_);
    put("etc/passwd", users_);
    put("etc/group", groups_);
}

MadeUpProcesses::~MadeUpProcesses() {
    std::error_code code;
    fs::remove_all(made_.folder, code);
}

void MadeUpProcesses::add(const json& kind, const std::string& allowed) {
    const int pid = next_;
    const auto own = fmt::format("proc/{}/", pid), comm = text(kind, "comm"), unit = text(kind, "unit");
    auto cgroup = kind.value("cgroup", unit.empty() ? "/made-up" : "/system.slice/" + unit);
    if (kind.contains("pod")) { // as CRI-O has it
        const auto container = fmt::format("{:064x}", pid);
        const json annotations{{"io.kubernetes.pod.name", text(kind, "pod")},
                               {"io.kubernetes.pod.namespace", text(kind, "namespace")}};
        cgroup = kind.value("cgroup", "/kubepods.slice") + "/crio-" + container + ".scope";
        put("run/containers/storage/overlay-containers/" + container + "/userdata/config.json",
            json{{"annotations", annotations}}.dump());
    }
    std::vector<std::string> names{comm};
    if (kind.contains("threads"))
        for (const auto& [name, number] : kind["threads"].items())
            names.insert(names.end(), number.get<std::size_t>(), name);
    const auto status =
        fmt::format("PPid:\t1\nUid:\t{0}\t{0}\t{0}\t{0}\nGid:\t{1}\t{1}\t{1}\t{1}\nCpus_allowed_list:\t{2}\n",
                    number_of(text(kind, "user"), users_), number_of(text(kind, "group"), groups_), allowed);
    for (auto& name : names) {
        const auto in = next_ == pid ? own : fmt::format("{}task/{}/", own, next_);
        name.resize(std::min(name.size(), affinityd::policy::longest_task_name)); // as the kernel does
        put(in + "stat", fmt::format("{0} ({1}) S 1 {2} {2} 0 -1 0 0 0 0 0 0 0 0 0 20 0 {3} 0 {0}\n", next_,
                                     name, pid, names.size()));
        put(in + "status", fmt::format("Tgid:\t{}\nPid:\t{}\n{}", pid, next_++, status));
    }
    put(own + "cmdline", kind.value("cmdline", comm));
    put(own + "cgroup", "0::" + cgroup);
    put(own + "cpuset", cgroup);
    put("sys/fs/cgroup" + cgroup + "/cpuset.cpus.effective", allowed);
    if (kind.contains("exe")) link(own + "exe", text(kind, "exe"));
    for (const auto& port : list(kind, "listen")) {
        const auto inode = sockets_.size(); // grows with each socket
        sockets_ +=
            fmt::format("   0: 00000000:{:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 "
                        "    0        0 {} 1\n",
                        port.get<int>(), inode);
        link(fmt::format("{}fd/{}", own, inode), fmt::format("socket:[{}]", inode));
    }
    for (const auto& nic : list(kind, "nics"))
        made_.nics[pid].push_back(nic);
}

void MadeUpProcesses::put(const std::string& path, const std::string& text) const {
    const auto file = fs::path(made_.folder) / path;
    fs::create_directories(file.parent_path());
    std::ofstream out(file);
    out.exceptions(std::ios::failbit | std::ios::badbit);
    out << text << std::flush;
}

void MadeUpProcesses::link(const std::string& path, const std::string& target) const {
    const auto file = fs::path(made_.folder) / path;
    fs::create_directories(file.parent_path());
    fs::create_symlink(target, file);
}

} // namespace affinityctl
