// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/task_id.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::inventory {

/// PF_ flags of /proc/PID/stat field 9 that matter here; include/linux/sched.h.
inline constexpr unsigned pf_no_setaffinity =
    0x04000000; ///< userland may not move it (per-CPU kernel threads)
inline constexpr unsigned pf_kthread = 0x00200000;

/// A thread, by what is cheap to read of it.
struct Thread {
    TaskId id;
    std::string comm;   ///< at most 15 bytes (63 for some kernel threads), any bytes but NUL
    unsigned flags = 0; ///< PF_ bits
    CpuSet allowed;     ///< present mask as granted; empty: could not be read
    [[nodiscard]] bool is_kernel() const { return (flags & pf_kthread) != 0; }
    [[nodiscard]] bool is_immovable() const { return (flags & pf_no_setaffinity) != 0; }
};

/// The pod that a container belongs to; both are empty where that is not known.
struct Pod {
    std::string name, space; ///< and its namespace
    friend bool operator==(const Pod&, const Pod&) = default;
};

/// Everything that a selector may ask of a process. Cheap facts are filled at once; expensive ones on the
/// first request, so that a matcher that never asks never reads. A process that has gone answers with empty
/// values.
class ProcessFacts {
  public:
    virtual ~ProcessFacts() = default;
    [[nodiscard]] virtual TaskId id() const = 0;  ///< main thread
    [[nodiscard]] virtual int parent() const = 0; ///< ppid, 0 if none
    [[nodiscard]] virtual bool is_kernel() const = 0;
    [[nodiscard]] virtual const std::string& comm() const = 0; ///< main thread's name
    [[nodiscard]] virtual const std::string&
    exe() const = 0; ///< path without " (deleted)"; "" unreadable or kernel
    /// False: what this machine has at the path exe() is another file. The process sees its program there by
    /// a mount of its own.
    [[nodiscard]] virtual bool is_exe_true() const { return true; }
    [[nodiscard]] virtual const std::string& cmdline() const = 0; ///< arguments joined by one space
    [[nodiscard]] virtual const std::string&
    cgroup() const = 0;                             ///< unified path, else the systemd hierarchy's, else "/"
    [[nodiscard]] virtual unsigned uid() const = 0; ///< effective user
    [[nodiscard]] virtual unsigned gid() const = 0; ///< effective group
    [[nodiscard]] virtual const std::string&
    user() const = 0; ///< name of uid, its number as text if it has none
    [[nodiscard]] virtual const std::string& group() const = 0;
    [[nodiscard]] virtual const std::vector<std::uint16_t>&
    listen_ports() const = 0; ///< TCP and UDP ports of this network namespace it listens on, sorted
    /// The same of the network namespace that it lives in, if that is another one.
    [[nodiscard]] virtual const std::vector<std::uint16_t>& foreign_ports() const {
        static const std::vector<std::uint16_t> none;
        return none;
    }
    /// The pod of its container, by the id that its control group has.
    [[nodiscard]] virtual const Pod& pod(const std::string& container) const {
        static_cast<void>(container);
        static const Pod none;
        return none;
    }
    /// False: a file was asked for and could not be opened, because no descriptor or memory was left. A fact
    /// that is empty then need not be so.
    [[nodiscard]] virtual bool is_complete() const { return true; }
    /// True: it is incomplete because the process gives no answer. When it does, it is looked at again.
    [[nodiscard]] virtual bool is_silent() const { return false; }
};

} // namespace affinityd::inventory
