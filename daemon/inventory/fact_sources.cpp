// SPDX-License-Identifier: Apache-2.0
#include "inventory/fact_sources.hpp"

#include "base/text.hpp"
#include "inventory/lookup.hpp"
#include "inventory/process_sockets.hpp"
#include "inventory/socket_table.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::inventory {

namespace {

constexpr std::size_t most_cpusets = 65536;

} // namespace

FactSources::FactSources(const host::Root& root)
    : root_(&root), service_(root.is_live() ? std::make_unique<NameService>() : nullptr),
      command_lines_(root.is_live() ? std::make_unique<CommandLines>() : nullptr),
      names_(root, service_ ? AskName([service = service_.get()](NameKind kind, unsigned id) {
                 return service->find(kind, id);
             })
                            : AskName{}),
      listeners_(root.is_live() ? std::make_unique<ListenerList>(root) : nullptr) {}

FactSources::FactSources(const host::Root& root, AskName ask)
    : root_(&root), names_(root, root.is_live() ? std::move(ask) : AskName{}) {}

std::string FactSources::user(unsigned uid) { return names_.find(NameKind::user, uid); }
std::string FactSources::group(unsigned gid) { return names_.find(NameKind::group, gid); }

uid_t FactSources::owner(int pid) {
    const auto uid = root_->proc().owner(std::to_string(pid));
    return uid ? person(*uid) : gone;
}

uid_t FactSources::starter(int pid) {
    const auto its_owner = owner(pid);
    if (its_owner != 0) return its_owner;
    const auto uid = read_real_user(*root_, pid);
    return uid ? person(*uid) : gone;
}

const FactSources::PortsByInode& FactSources::own_namespace_ports() {
    if (ports_) return *ports_;
    ports_.emplace();
    if (const auto table = read_socket_table(*root_, Wanted::listeners))
        table->for_each([&](const LocalSocket& socket) { ports_->emplace(socket.inode, socket.port); });
    return *ports_;
}

std::optional<ListenPorts> FactSources::listen_ports(const std::string& process,
                                                     const std::vector<std::uint64_t>& inodes) {
    if (inodes.empty()) return ListenPorts{};
    if (listeners_)
        return listeners_->find(parse_number<int>(process.substr(0, process.find('/'))).value_or(0), inodes);
    const auto& known = own_namespace_ports();
    std::vector<std::uint16_t> ports;
    if (!root_->is_live())
        ports = foreign_listen_ports(*root_, process, inodes); // nobody forges anything in a recording
    for (const auto inode : inodes)
        if (const auto found = known.find(inode); found != known.end()) ports.push_back(found->second);
    std::ranges::sort(ports);
    const auto rest = std::ranges::unique(ports);
    ports.erase(rest.begin(), rest.end());
    return ListenPorts{std::move(ports)};
}

const CpuSet* FactSources::cpuset(int pid) {
    const auto path = root_->proc().text(std::to_string(pid) + "/cpuset");
    if (!path || !path->starts_with('/') || *path == "/") return nullptr; // the root's has every CPU
    if (cpusets_.size() >= most_cpusets) cpusets_.clear();
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
    names_.refresh();
    if (service_) service_->refresh();
    ports_.reset();
    if (listeners_) listeners_->ask();
}

} // namespace affinityd::inventory
