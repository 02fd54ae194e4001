// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/fd.hpp"

#include <map>
#include <string>

namespace affinityd::steer {

/// Descriptors that systemd keeps for the daemon while it is restarted, by name; it closes them when the unit
/// stops. Without systemd nothing is kept. Source: sd_pid_notify_with_fds(3), FileDescriptorStoreMax= in
/// systemd.service(5).
class Kept {
  public:
    /// Takes what a former daemon has left, from the environment.
    static Kept inherited();
    /// A descriptor of that name; -1: there is none.
    [[nodiscard]] int find(const std::string& name) const;
    [[nodiscard]] const std::map<std::string, host::Fd>& all() const { return fds_; }
    /// Has systemd keep a duplicate.
    void store(const std::string& name, int fd);
    /// Closes it, and has systemd close it.
    void remove(const std::string& name);

  private:
    std::map<std::string, host::Fd> fds_;
};

} // namespace affinityd::steer
