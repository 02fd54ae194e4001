// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"
#include "host/subordinate_ids.hpp"
#include "inventory/command_lines.hpp"
#include "inventory/listener_list.hpp"
#include "inventory/name_service.hpp"
#include "inventory/user_names.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::inventory {

/// What several processes' facts share: names of users and groups, who listens where, and cpusets. Owned
/// by the scanner; not for several threads.
class FactSources {
  public:
    /// On this machine, names that etc/passwd and etc/group lack are asked of the name service by a thread of
    /// its own: until the answer is there, the number is the name. `root` must outlive the sources.
    explicit FactSources(const host::Root& root);
    /// The same with another way to ask, which a recording ignores; an empty one: the files only. A caller
    /// without an event loop may give ask_name_service itself.
    FactSources(const host::Root& root, AskName ask);

    [[nodiscard]] std::string user(unsigned uid); ///< its number as text if it has no name
    [[nodiscard]] std::string group(unsigned gid);
    /// Under whose account this user's processes run: all subordinate ids of a user stand for one.
    [[nodiscard]] uid_t person(uid_t user) { return persons_.person(user); }
    /// Whose account a process that has gone is: of no user, so that nobody's share is filled by those who
    /// are gone before they are looked at.
    static constexpr uid_t gone = ~uid_t{0};
    /// Whose rights a process has, or `gone`.
    [[nodiscard]] uid_t owner(int pid);
    /// Who started it, also where it has root's rights, or `gone`; takes longer.
    [[nodiscard]] uid_t starter(int pid);
    /// The thread that asks for names: when its descriptor is readable, names have come that were numbers
    /// before. nullptr: no thread asks.
    [[nodiscard]] NameService* name_service() { return service_.get(); }
    /// The threads that read arguments: when the descriptor is readable, some have come late. nullptr: no
    /// thread reads; whoever asks may wait.
    [[nodiscard]] CommandLines* command_lines() { return command_lines_.get(); }

    /// The thread that lists who listens, which has to be told which ports matter. nullptr: no thread does.
    [[nodiscard]] ListenerList* listeners() { return listeners_.get(); }

    /// TCP and UDP ports of this network namespace that the process listens on, ascending, each once; in a
    /// recording, of the process's own namespace, too. Where a thread lists them: those that matter, as they
    /// were when it did so last; no value: it never did. `inodes`: of its sockets, ascending.
    [[nodiscard]] std::optional<ListenPorts> listen_ports(const std::string& process,
                                                          const std::vector<std::uint64_t>& inodes);

    /// CPUs that the process's cpuset lets it have: cpuset(7), cgroups v1 and v2. nullptr: all, or not known.
    /// Valid until refresh().
    [[nodiscard]] const CpuSet* cpuset(int pid);

    [[nodiscard]] const host::Root& root() const { return *root_; }
    /// Paths of the cpusets that were asked for since refresh(), except the root's:
    /// "/system.slice/nginx.service".
    [[nodiscard]] std::vector<std::string> cpuset_paths() const;
    [[nodiscard]] std::size_t cpusets() const { return cpusets_.size(); }

    /// Forgets everything: sockets change with time, names now and then. Once per pass.
    void refresh();

  private:
    using PortsByInode = std::unordered_map<std::uint64_t, std::uint16_t>;
    const PortsByInode& own_namespace_ports();

    const host::Root* root_;
    std::unique_ptr<NameService> service_;
    std::unique_ptr<CommandLines> command_lines_;
    UserNames names_;
    host::SubordinateIds persons_;
    std::unordered_map<std::string, std::optional<CpuSet>> cpusets_; ///< by the cpuset's path
    std::unique_ptr<ListenerList> listeners_;
    std::optional<PortsByInode> ports_; ///< of this network namespace, where no thread lists them
};

} // namespace affinityd::inventory
