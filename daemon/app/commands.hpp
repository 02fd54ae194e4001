// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <string>

namespace affinityd::app {

/// What can be asked of and said to a running daemon, without a word about how it is carried. Long answers
/// are JSON texts whose keys affinityctl(1) documents.
class Commands {
  public:
    virtual ~Commands() = default;
    [[nodiscard]] virtual std::string status() const = 0;
    /// What a tick would do now; nothing is changed.
    [[nodiscard]] virtual std::string plan() = 0;
    /// Everything about one PID, TID, interface or IRQ number, and why.
    [[nodiscard]] virtual Result<std::string> explain(const std::string& subject) = 0;
    /// The measurements kept, of one kind or ("") of all, with how the last ones stand to those before.
    [[nodiscard]] virtual std::string history(const std::string& kind) const = 0;
    /// Reads the policies again; an Error names each fault, and the running set stays.
    [[nodiscard]] virtual Result<std::string> reload() = 0;
    /// Puts back what a policy (by name), a process (by PID) or everybody ("") was given; it stays so until
    /// the next reload or `apply`.
    [[nodiscard]] virtual Result<std::string> release(const std::string& what) = 0;
    /// A full pass now, also over what was released or is backed off from.
    virtual void apply() = 0;
};

} // namespace affinityd::app
