// SPDX-License-Identifier: Apache-2.0
#include "machine/pods.hpp"

#include "host/root.hpp"
#include "policy/cgroup_path.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace affinityd::machine {

namespace {

bool is_of_kubernetes(std::string_view path) { return path.contains("/kubepods"); }

/// Containers of one pod have its CPUs together.
std::string_view owner_of(const CpuGroup& group) {
    const std::string_view path = group.path;
    return is_of_kubernetes(path) ? path.substr(0, path.rfind('/')) : path;
}

/// The kubelet gives CPUs away to guaranteed pods only: those of other classes are below a folder of these.
bool shares_by_class(std::string_view path) {
    return is_of_kubernetes(path) && (path.contains("burstable") || path.contains("besteffort"));
}

} // namespace

CpuSet own_cpus(const std::vector<CpuGroup>& groups, const CpuSet& online) {
    std::map<std::string_view, CpuSet> confined;
    CpuSet own, seen, shared;
    for (const auto& group : groups) {
        if (group.is_partition)
            own |= group.cpus;
        else if (!group.cpus.contains(online))
            confined[owner_of(group)] |= group.cpus;
    }
    for (const auto& [owner, cpus] : confined) {
        shared |= seen & cpus;
        seen |= cpus;
    }
    for (const auto& [owner, cpus] : confined)
        if (!shares_by_class(owner)) own |= cpus - shared;
    return own;
}

bool may_be_container(std::string_view path) {
    return is_of_kubernetes(path) || !policy::system_cgroup_names(path).container_id.empty();
}

CpuGroupReader::CpuGroupReader(const host::Root& root) : root_(&root), base_("fs/cgroup"), open_{""} {
    if (!root.sys().exists(base_ + "/cgroup.controllers") && root.sys().exists(base_ + "/cpuset"))
        base_ += "/cpuset";
}

CpuSet read_own_cpus(const host::Root& root, const CpuSet& online) {
    CpuGroupReader reader(root);
    while (!reader.step([] { return false; })) {
    }
    return own_cpus(reader.take(), online);
}

bool CpuGroupReader::step(const std::function<bool()>& out_of_time) {
    while (!open_.empty() && left_-- > 0) {
        const auto path = std::move(open_.back());
        open_.pop_back();
        look_at(path);
        if (out_of_time()) return open_.empty();
    }
    return true;
}

void CpuGroupReader::look_at(const std::string& path) {
    const auto& sys = root_->sys();
    const auto folder = base_ + path;
    const auto names = sys.list(folder);
    if (!names) return;
    std::vector<std::string> inner;
    for (const auto& name : *names) {
        constexpr std::array own{"cgroup.", "cpuset.", "cpu.",     "memory.",
                                 "io.",     "pids.",   "hugetlb.", "misc."};
        const auto is_own = [&](const char* prefix) { return name.starts_with(prefix); };
        const bool is_of_users = path.empty() && name == "user.slice"; // who make groups of any name
        if (!is_of_users && std::ranges::none_of(own, is_own) &&
            sys.exists(folder + "/" + name + "/cgroup.procs"))
            inner.push_back(path + "/" + name);
    }
    const auto partition = sys.text(folder + "/cpuset.cpus.partition").value_or("");
    const bool is_partition = !path.empty() && (partition == "root" || partition == "isolated");
    const bool is_named = !path.empty() && !policy::system_cgroup_names(path).container_id.empty();
    if (is_partition || is_named || (is_of_kubernetes(path) && inner.empty())) {
        auto cpus = sys.cpu_list(folder + "/cpuset.cpus.effective");
        if (!cpus || cpus->empty()) cpus = sys.cpu_list(folder + "/cpuset.cpus");
        if (cpus && !cpus->empty()) found_.push_back({path, std::move(*cpus), is_partition});
        return; // groups inside a container are its own
    }
    std::ranges::move(inner, std::back_inserter(open_));
}

} // namespace affinityd::machine
