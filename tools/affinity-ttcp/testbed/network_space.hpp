// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"
#include "host/root.hpp"

#include <functional>
#include <string>

namespace affinityd::ttcp {

/// A network namespace without a name. It lives as long as this object, or a process or socket in it, so
/// everything that was made in it ends with the experiment, even with a killed one. Needs root. For
/// single-threaded programs. NicKeeper takes out of it what was moved in.
class NetworkSpace {
  public:
    static Result<NetworkSpace> make(const host::Root& root);
    /// The namespace this process is in now.
    static Result<NetworkSpace> present(const host::Root& root);

    /// Runs `work` in this namespace and returns to the one before.
    [[nodiscard]] Result<void> within(const std::function<Result<void>()>& work) const;
    [[nodiscard]] int fd() const { return space_.get(); }
    /// The namespace that this process was in when this object was made.
    [[nodiscard]] int outside() const { return outside_.get(); }
    /// Its sysfs, mounted nowhere. It shows this namespace's interfaces, which the machine's own sysfs does
    /// not.
    [[nodiscard]] const host::Dir& sys() const { return sys_; }

  private:
    NetworkSpace(host::Fd space, host::Fd outside, host::Dir sys)
        : space_(std::move(space)), outside_(std::move(outside)), sys_(std::move(sys)) {}
    host::Fd space_;
    host::Fd outside_;
    host::Dir sys_;
};

} // namespace affinityd::ttcp
