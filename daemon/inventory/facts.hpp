// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"
#include "inventory/descriptor_walk.hpp"
#include "inventory/fact_sources.hpp"
#include "inventory/program_file.hpp"
#include "inventory/task.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::inventory {

/// Facts of a process in a root's proc tree. The stat line is read beforehand; every other file is expensive,
/// so it is read on the first request and the answer is kept, empty where the file cannot be read. Before
/// each read the start time proves that the number still belongs to the same process. An exec needs a new
/// object: it changes name, program and arguments.
class LazyFacts final : public ProcessFacts {
  public:
    struct Cheap {
        TaskId id;
        int parent = 0;
        unsigned flags = 0;
        std::string comm;
        bool is_leader_dead = false; ///< the main thread has ended, others go on
    };
    /// Both references must outlive the object; `sources` may be null.
    LazyFacts(const host::Root& root, FactSources* sources, Cheap cheap)
        : root_(&root), sources_(sources), cheap_(std::move(cheap)) {}

    [[nodiscard]] TaskId id() const override { return cheap_.id; }
    [[nodiscard]] int parent() const override { return cheap_.parent; }
    [[nodiscard]] bool is_kernel() const override { return (cheap_.flags & pf_kthread) != 0; }
    [[nodiscard]] const std::string& comm() const override { return cheap_.comm; }
    [[nodiscard]] const std::string& exe() const override { return program().path; }
    [[nodiscard]] bool is_exe_true() const override;
    [[nodiscard]] const std::string& cmdline() const override;
    [[nodiscard]] const std::string& cgroup() const override;
    [[nodiscard]] unsigned uid() const override { return owner().uid; }
    [[nodiscard]] unsigned gid() const override { return owner().gid; }
    [[nodiscard]] const std::string& user() const override;
    [[nodiscard]] const std::string& group() const override;
    [[nodiscard]] const std::vector<std::uint16_t>& listen_ports() const override;
    [[nodiscard]] const std::vector<std::uint16_t>& foreign_ports() const override;
    [[nodiscard]] bool are_ports_partial() const override { return are_ports_partial_; }
    [[nodiscard]] bool is_complete() const override { return is_complete_; }
    [[nodiscard]] bool is_silent() const override { return is_silent_; }
    [[nodiscard]] bool is_unfinished() const override { return expensive_ && expensive_->walk; }
    void go_on() override;

  private:
    struct Owner {
        unsigned uid = ~0U; ///< no user can have this one: what cannot be read must not pass for root
        unsigned gid = ~0U;
        bool known = false;
    };
    struct Expensive {
        std::optional<Program> program;
        std::optional<bool> is_exe_true;
        std::optional<std::string> cmdline, cgroup, user, group;
        std::optional<Owner> owner;
        std::optional<DescriptorWalk> walk;               ///< under way
        std::optional<std::vector<std::uint64_t>> inodes; ///< of its sockets
        std::optional<std::vector<std::uint16_t>> ports, foreign_ports;
    };
    [[nodiscard]] const std::vector<std::uint64_t>* socket_inodes() const; ///< nullptr: not known yet
    [[nodiscard]] std::string arguments() const;
    [[nodiscard]] Expensive& expensive() const;
    [[nodiscard]] const Program& program() const;
    [[nodiscard]] const Owner& owner() const;

    const host::Root* root_;
    FactSources* sources_;
    Cheap cheap_;
    mutable std::unique_ptr<Expensive> expensive_; ///< none for the many processes that are never asked
    mutable bool is_complete_ = true;
    mutable bool is_silent_ = false;
    mutable bool are_ports_partial_ = false;
};

/// Effective user and group from the text of /proc/PID/status; no value if it lacks them.
struct EffectiveIds {
    unsigned uid = 0;
    unsigned gid = 0;
};
[[nodiscard]] std::optional<EffectiveIds> parse_effective_ids(std::string_view status);

} // namespace affinityd::inventory
