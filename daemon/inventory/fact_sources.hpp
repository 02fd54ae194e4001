// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::inventory {

/// What several processes' facts share: names of users and groups, and who listens where. Owned by whoever
/// scans; not for several threads.
class FactSources {
  public:
    /// Names come from the name service of this machine; a recording has none, then the number is the name.
    explicit FactSources(const host::Root& root) : root_(&root) {}

    const std::string& user(unsigned uid); ///< its number as text if it has no name
    const std::string& group(unsigned gid);
    /// TCP and UDP ports that this process listens on, ascending, each once; in a network namespace of its
    /// own too.
    std::vector<std::uint16_t> listen_ports(int pid);

    /// CPUs that the process's cpuset lets it have: cpuset(7), cgroups v1 and v2. nullptr: all, or not known.
    /// Valid until refresh().
    const CpuSet* cpuset(int pid);

    /// Paths of the cpusets that were asked for since refresh(), but the root's:
    /// "/system.slice/nginx.service".
    [[nodiscard]] std::vector<std::string> cpuset_paths() const;
    [[nodiscard]] std::size_t cpusets() const { return cpusets_.size(); }

    /// Forgets everything: sockets change with time, names now and then. Once per reconcile.
    void refresh();

  private:
    using PortsByInode = std::unordered_map<std::uint64_t, std::uint16_t>;
    const PortsByInode& own_namespace_ports();

    const host::Root* root_;
    std::unordered_map<unsigned, std::string> users_;
    std::unordered_map<unsigned, std::string> groups_;
    std::unordered_map<std::string, std::optional<CpuSet>> cpusets_; ///< by the cpuset's path
    PortsByInode ports_;
    bool ports_known_ = false;
};

} // namespace affinityd::inventory
