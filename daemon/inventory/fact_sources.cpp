// SPDX-License-Identifier: Apache-2.0
#include "inventory/fact_sources.hpp"

#include "inventory/process_sockets.hpp"
#include "inventory/socket_table.hpp"

#include <algorithm>
#include <cerrno>

#include <grp.h>
#include <pwd.h>

namespace affinityd::inventory {

namespace {

constexpr std::size_t most_names = 65536; // ids are free for every user to choose inside user namespaces

/// Asks the name service with a buffer that grows as it wants, to a limit.
template <class Record, class Ask>
std::string name_of(unsigned id, char* Record::*name, Ask ask) {
    std::vector<char> buffer(1024);
    Record record{};
    Record* found = nullptr;
    int code = ask(id, &record, buffer.data(), buffer.size(), &found);
    while (code == ERANGE && buffer.size() < (1U << 20)) {
        buffer.resize(buffer.size() * 4);
        code = ask(id, &record, buffer.data(), buffer.size(), &found);
    }
    return code == 0 && found != nullptr ? std::string(record.*name) : std::to_string(id);
}

template <class Look>
const std::string& remembered(std::unordered_map<unsigned, std::string>& names, unsigned id, Look look) {
    if (const auto known = names.find(id); known != names.end()) return known->second;
    if (names.size() >= most_names) names.clear();
    return names.emplace(id, look()).first->second;
}

} // namespace

const std::string& FactSources::user(unsigned uid) {
    return remembered(users_, uid, [&] {
        return root_->is_live() ? name_of(uid, &passwd::pw_name, ::getpwuid_r) : std::to_string(uid);
    });
}

const std::string& FactSources::group(unsigned gid) {
    return remembered(groups_, gid, [&] {
        return root_->is_live() ? name_of(gid, &::group::gr_name, ::getgrgid_r) : std::to_string(gid);
    });
}

const FactSources::PortsByInode& FactSources::own_namespace_ports() {
    if (!ports_known_) {
        ports_known_ = true;
        if (const auto table = read_socket_table(*root_, Wanted::listeners))
            table->for_each([&](const LocalSocket& socket) { ports_.emplace(socket.inode, socket.port); });
    }
    return ports_;
}

std::vector<std::uint16_t> FactSources::listen_ports(int pid) {
    const auto inodes = socket_inodes(*root_, pid).value_or(std::vector<std::uint64_t>{});
    if (inodes.empty()) return {};
    PortsByInode foreign;
    if (!shares_network_namespace(*root_, pid)) {
        const auto listeners = read_namespace_listeners(*root_, pid);
        for (const auto& socket : listeners.value_or(std::vector<LocalSocket>{}))
            foreign.emplace(socket.inode, socket.port);
    }
    const auto& known = foreign.empty() ? own_namespace_ports() : foreign;
    std::vector<std::uint16_t> ports;
    for (const auto inode : inodes)
        if (const auto found = known.find(inode); found != known.end()) ports.push_back(found->second);
    std::ranges::sort(ports);
    const auto rest = std::ranges::unique(ports);
    ports.erase(rest.begin(), rest.end());
    return ports;
}

const CpuSet* FactSources::cpuset(int pid) {
    const auto path = root_->proc().text(std::to_string(pid) + "/cpuset");
    if (!path || !path->starts_with('/') || *path == "/") return nullptr; // the root's has every CPU
    if (cpusets_.size() >= most_names) cpusets_.clear();
    const auto [at, is_new] = cpusets_.try_emplace(*path);
    if (is_new) {
        const auto& sys = root_->sys();
        at->second = sys.cpu_list("fs/cgroup" + *path + "/cpuset.cpus.effective");
        if (!at->second) at->second = sys.cpu_list("fs/cgroup/cpuset" + *path + "/cpuset.effective_cpus");
    }
    return at->second && !at->second->empty() ? &*at->second : nullptr;
}

std::vector<std::string> FactSources::cpuset_paths() const {
    std::vector<std::string> paths;
    for (const auto& [path, cpus] : cpusets_)
        paths.push_back(path);
    return paths;
}

void FactSources::refresh() {
    cpusets_.clear();
    users_.clear();
    groups_.clear();
    ports_.clear();
    ports_known_ = false;
}

} // namespace affinityd::inventory
