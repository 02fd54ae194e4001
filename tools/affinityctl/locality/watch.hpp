// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "locality/locality.hpp"
#include "netdev/nic.hpp"
#include "steer/reads.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace affinityctl {

/// The processes whose reads are meant.
struct LocalitySubject {
    enum class Kind { all, process, nic, policy, unit };
    Kind kind = Kind::all;
    std::string name;              ///< as it was typed; "" for all
    int pid = 0;                   ///< of a process
    std::vector<unsigned> devices; ///< of an interface: its ifindex, and those of what is stacked on it
};

/// The interface and all that are on top of it: a flow is known by the uppermost.
[[nodiscard]] std::vector<unsigned> devices_over(std::span<const affinityd::netdev::Nic> nics,
                                                 const std::string& name);

/// Processes under a policy by the daemon's GetStatus; no value: it has no such policy.
[[nodiscard]] std::optional<std::vector<int>> processes_under(const nlohmann::json& status,
                                                              const std::string& policy);

/// The policy by the daemon's GetStatus that steers listeners, or says why not, and has one of these
/// processes; "": none.
[[nodiscard]] std::string steering_policy(const nlohmann::json& status, const std::vector<int>& pids);

/// The meaning of a word: a process or thread id, an interface, a policy of the daemon's (`status` is its
/// GetStatus, or null), a systemd unit, in this order. An Error says that there is none; its code is ESRCH
/// for a process, ENOTCONN where a daemon that does not answer would have to be asked, else ENOENT.
[[nodiscard]] affinityd::Result<LocalitySubject> read_subject(const affinityd::host::Root& root,
                                                              const std::string& word,
                                                              std::span<const affinityd::netdev::Nic> nics,
                                                              const nlohmann::json& status);

/// How many sockets the processes have that listen at one address and port together: SO_REUSEPORT gives each
/// worker its own. The greatest number of any address; 0: they do not listen, or it cannot be read. Only what
/// the kernel lists is looked at, no socket is touched; of many processes the first 64.
[[nodiscard]] std::size_t listeners_at_one_port(const affinityd::host::Root& root, std::span<const int> pids);

/// Sees for some time who reads where the kernel takes packets in: by a BPF program.
class LocalityWatch {
  public:
    /// `ask` is the daemon's GetStatus. `root` must outlive it.
    LocalityWatch(const affinityd::host::Root& root, LocalitySubject subject,
                  std::function<nlohmann::json()> ask);

    /// Begins to count, `with_others`: not only TCP. An Error says why it cannot be.
    [[nodiscard]] affinityd::Result<void> begin(bool with_others);
    /// Watches until the time is over, the only process that is meant has ended, or `wait`, which waits for
    /// so long, says that the user wants no more.
    void run(std::chrono::milliseconds time, const std::function<bool(std::chrono::milliseconds)>& wait);
    /// Everything that was seen, of all processes; to be called once, after run(). An Error: it cannot be
    /// read.
    [[nodiscard]] affinityd::Result<affinityd::locality::ReadCounts> take();
    /// True: the subject stands for the process, or did meanwhile.
    [[nodiscard]] bool is_meant(int pid) const;

  private:
    [[nodiscard]] bool has_ended() const;
    void ask_daemon();
    /// Finds out about the processes that have read, those that are known already excepted. The daemon is
    /// asked at most once a second, and at the `last` look in any case.
    void look_at_readers(bool is_last);

    const affinityd::host::Root* root_;
    LocalitySubject subject_;
    std::function<nlohmann::json()> ask_;
    std::optional<affinityd::steer::Reads> events_;
    std::map<int, std::string> readers_; ///< with the names that the kernel's table has
    std::map<int, std::string> names_;   ///< of all that were looked at, when they were last
    std::set<int> members_;              ///< not used where all are meant
    std::chrono::steady_clock::time_point began_{}, asked_{};
};

} // namespace affinityctl
