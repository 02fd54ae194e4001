// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "behaviours/neighbours/irqbalance.hpp"
#include "status/status.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::behaviours {

using status::OtherWriter;

/// Programs that set the masks of interrupts (irqbalance, TuneD), and a loaded sched_ext scheduler; keeps
/// irqbalance off those that are under policy while it runs.
class OtherWriters {
  public:
    struct Places {
        std::string runtime_dir;    ///< irqbalance's own list is kept in its irqbalance.banned
        std::string irqbalance_dir; ///< where irqbalance has its sockets
        bool acts = true;           ///< false: nothing is said to irqbalance
    };
    /// `root` must outlive it.
    OtherWriters(const host::Root& root, Places places);

    void begin_pass() { seen_.clear(); }
    /// A user process of this pass, by its id and name.
    void see(int pid, std::string_view comm);
    /// True for such a writer that the last pass has not seen.
    [[nodiscard]] bool is_new(int pid, std::string_view comm) const {
        return is_name(comm) && is_unknown(pid, comm); // asked for each new program
    }
    /// All were seen. `irqs`: numbers of the interrupts under policy. Starts what fd() carries on.
    void finish_pass(std::vector<unsigned> irqs);
    /// Starts to give irqbalance its own list back. Over when is_talking() is false.
    void stop();

    /// The conversation with irqbalance, see Irqbalance.
    [[nodiscard]] int fd() const { return irqbalance_.fd(); }
    void handle() { irqbalance_.handle(); }
    [[nodiscard]] bool is_talking() const { return irqbalance_.is_talking(); }

    /// As of the last pass, with irqbalance's present note.
    [[nodiscard]] std::vector<OtherWriter> list() const;
    /// Warnings since the last call, oldest first. A writer is told once for each text of it.
    [[nodiscard]] std::vector<std::string> take_notices();

  private:
    [[nodiscard]] static bool is_name(std::string_view comm) {
        return comm == "irqbalance" || comm == "tuned";
    }
    [[nodiscard]] bool is_unknown(int pid, std::string_view comm) const;
    [[nodiscard]] bool is_writer(int pid, std::string_view comm) const;
    const host::Root& root_;
    bool acts_;
    Irqbalance irqbalance_;
    std::map<std::string, int, std::less<>> seen_;    ///< name of the program -> its process id
    std::map<std::string, int, std::less<>> running_; ///< the same as of the last finished pass
    std::set<std::string> told_;
    bool is_list_new_ = false; ///< since notices were taken
};

} // namespace affinityd::behaviours
