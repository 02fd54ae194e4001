// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "enforcer/irqbalance.hpp"
#include "inventory/head.hpp"
#include "planner/placements.hpp"

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::app {

/// Something else on this machine that sets the masks of interrupts, too.
struct OtherWriter {
    std::string name;  ///< "irqbalance", "tuned", "systemd.link", "script"
    std::string where; ///< "pid 812", or file and line
    std::string note;  ///< what it does, what was done about it, or what a person may do
};

/// Settings and scripts that set masks of interrupts when an interface comes, at boot or by the clock:
/// systemd.link files with such a setting and scripts of vendors (set_irq_affinity), in the places where they
/// are usually put. At most `most` of them.
[[nodiscard]] std::vector<OtherWriter> find_interrupt_settings(const host::Root& root, std::size_t most = 32);

/// Keeps the list, and irqbalance off the interrupts that are under policy: through its socket, while it
/// runs. Its own list of banned ones is kept in `folder`/irqbalance.banned, so that it can be given back also
/// by the next daemon.
class OtherWriters {
  public:
    /// `folder`: the runtime directory. `acts`: false: nothing is said to irqbalance.
    OtherWriters(const host::Root& root, std::string folder, enforcer::Irqbalance irqbalance, bool acts,
                 Log& log)
        : root_(root), record_(std::move(folder) + "/irqbalance.banned"), irqbalance_(std::move(irqbalance)),
          acts_(acts), log_(log) {}

    void begin_pass() { seen_.clear(); }
    /// A process of this pass.
    void see(const inventory::Head& head);
    /// All were seen. Files are read every ten minutes at most.
    void finish_pass(const planner::Placements& placements,
                     std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());
    /// A person asked for everything anew: files too, with the next pass.
    void look_again() { files_read_ = {}; }
    /// Gives irqbalance its own list back.
    void stop();

    [[nodiscard]] const std::vector<OtherWriter>& list() const { return list_; }

  private:
    struct Banned {
        std::vector<unsigned> original; ///< what it left alone before us
        std::vector<unsigned> asked;    ///< with ours
        std::string fault;              ///< why it could not be told
    };
    [[nodiscard]] std::string keep_off(const std::vector<unsigned>& irqs);
    [[nodiscard]] Result<void> ban(const std::string& socket, Banned& banned,
                                   const std::vector<unsigned>& irqs);
    [[nodiscard]] Result<void> write_record() const;
    [[nodiscard]] std::map<std::string, std::vector<unsigned>> read_record() const;

    const host::Root& root_;
    std::string record_;
    enforcer::Irqbalance irqbalance_;
    bool acts_;
    Log& log_;
    std::map<std::string, int> seen_;      ///< name of the program -> its PID
    std::map<std::string, Banned> banned_; ///< by socket
    std::vector<OtherWriter> files_;
    std::chrono::steady_clock::time_point files_read_{};
    std::vector<OtherWriter> list_;
};

} // namespace affinityd::app
