// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"
#include "host/subordinate_ids.hpp"
#include "inventory/command_lines.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/sockets.hpp"
#include "inventory/task.hpp"
#include "inventory/users.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::inventory {

/// Where a process's program was when it was started, by the link /proc/PID/exe.
struct Program {
    std::string path;        ///< "": unknown
    bool is_removed = false; ///< deleted, or replaced by another file, since
};
/// From the text of the link, which ends in " (deleted)" for a removed file; proc_pid_exe(5).
[[nodiscard]] Program program_of(std::string link);

/// False if the program is known to be another file than the one that this machine has at its path, or had
/// there when it was started. The path is the one in the mount namespace that the program was opened in, and
/// any user can make one, and mount any file at any path in it. True on a recording. `process`: its folder
/// below /proc. Asks no file system that a user may have made: what such a one has is not believed. An Error:
/// there was no descriptor or memory left to find out.
[[nodiscard]] Result<bool> is_program_of_this_machine(const host::Root& root, const host::Dir& process,
                                                      const Program& program);

/// Shared by the facts of several processes: names of users and groups, who listens where, and cpusets. Owned
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
    /// The account of a process that has gone: of no user, so that no user's share is filled by those who
    /// are gone before they are looked at.
    static constexpr uid_t gone = ~uid_t{0};
    /// The user whose rights a process has, or `gone`. All users of a user namespace are its root.
    [[nodiscard]] uid_t owner(int pid);
    /// The user who started it, also where it has root's rights, or `gone`; takes longer.
    [[nodiscard]] uid_t starter(int pid);
    /// The thread that asks for names: when its descriptor is readable, names have come that were numbers
    /// before. nullptr: no thread asks.
    [[nodiscard]] NameService* name_service() { return service_.get(); }
    /// The threads that read arguments: when the descriptor is readable, some have come late. nullptr: no
    /// thread reads; a caller may wait.
    [[nodiscard]] CommandLines* command_lines() { return command_lines_.get(); }

    /// The thread that lists who listens, which has to be told which ports matter. nullptr: no thread does.
    [[nodiscard]] Listeners* listeners() { return listeners_.get(); }

    /// TCP and UDP ports of this network namespace that the process listens on, ascending, each once; in a
    /// recording, of the process's own namespace, too. Where a thread lists them: those that matter, as they
    /// were when it did so last; no value: it never did. `inodes`: of its sockets, ascending.
    [[nodiscard]] std::optional<std::vector<std::uint16_t>>
    listen_ports(const std::string& process, const std::vector<std::uint64_t>& inodes);

    /// The pod of a container, as its runtime wrote it down before it started the first process. `container`:
    /// an id that root has given.
    [[nodiscard]] const Pod& pod(const std::string& container);

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
    const host::Root* root_;
    std::unique_ptr<NameService> service_;
    std::unique_ptr<CommandLines> command_lines_;
    UserNames names_;
    host::SubordinateIds persons_;
    std::unordered_map<std::string, std::optional<CpuSet>> cpusets_; ///< by the cpuset's path
    std::unordered_map<std::string, Pod> pods_; ///< by the container's id, which never comes again
    std::unique_ptr<Listeners> listeners_;
    std::optional<SocketTable> table_; ///< of this network namespace, where no thread lists them
};

/// The facts of a process that its stat line has.
struct CheapFacts {
    TaskId id;
    int parent = 0;
    unsigned flags = 0;
    std::string comm;
    bool is_leader_dead = false; ///< the main thread has ended, others go on
};

/// Facts of a process in a root's proc tree. The stat line is read beforehand; every other file is expensive,
/// so it is read on the first request and the answer is kept, empty where the file cannot be read. Before
/// each read the start time proves that the number still belongs to the same process. An exec needs new
/// facts: it changes name, program and arguments. Both references must outlive them; without `sources` (null)
/// numbers stand for the names of users and groups, and no port is known.
[[nodiscard]] std::shared_ptr<ProcessFacts> lazy_facts(const host::Root& root, FactSources* sources,
                                                       CheapFacts cheap);

/// True if a runtime is here that writes which pod a container belongs to, where that is looked for.
[[nodiscard]] bool tells_pods(const host::Root& root);

/// Effective user and group from the text of /proc/PID/status; no value if it lacks them.
struct EffectiveIds {
    unsigned uid = 0;
    unsigned gid = 0;
};
[[nodiscard]] std::optional<EffectiveIds> parse_effective_ids(std::string_view status);

} // namespace affinityd::inventory
