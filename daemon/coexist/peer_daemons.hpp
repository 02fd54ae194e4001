// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/action.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::host {
class Root;
}
namespace affinityd::state {
class Journal;
}

namespace affinityd::coexist {

/// Another affinityd on this machine, with a runtime directory of its own, that holds subjects which this
/// daemon holds too: they will go on undoing each other's work until a person decides.
struct PeerDaemon {
    std::string runtime_dir;
    std::vector<planner::Subject> shared; ///< never empty; at most 1,000 are listed
};

/// Finds peer daemons among the processes of root, and what they hold by the undo journal that they have
/// open. Sockets, names and arguments prove nothing, because any user can choose them: a peer is a process of
/// root's whose program is this one, or root's program of the name affinityd; its journal is read only from a
/// TrustedFolder, at most 16 MiB of it.
class PeerDaemons {
  public:
    /// `root` must outlive it. `runtime_dir`: this daemon's own.
    PeerDaemons(const host::Root& root, std::string runtime_dir);
    PeerDaemons(PeerDaemons&&) noexcept;
    PeerDaemons& operator=(PeerDaemons&&) noexcept;
    ~PeerDaemons();

    void begin_pass();
    /// A user process of this pass, by its id and name. Reads one file of those of the name affinityd.
    void see(int pid, std::string_view comm);
    /// All were seen: step() finds out what they hold. A search under way is abandoned.
    void finish_pass();
    /// Works until `out_of_time` says so. True: no search is under way.
    [[nodiscard]] bool step(const state::Journal& own, const std::function<bool()>& out_of_time);

    /// What the last finished search found, by runtime directory.
    [[nodiscard]] const std::vector<PeerDaemon>& list() const { return found_; }

  private:
    struct Search;
    const host::Root* root_;
    std::string runtime_dir_;
    std::string own_name_;  ///< of this process
    std::vector<int> seen_; ///< process ids
    std::unique_ptr<Search> search_;
    std::vector<PeerDaemon> found_;
};

} // namespace affinityd::coexist
