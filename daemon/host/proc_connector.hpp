// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/proc_source.hpp"

#include <functional>
#include <memory>

namespace affinityd::host {

/// A subscription to the kernel's process events (netlink connector, CN_IDX_PROC). What is not wanted is
/// dropped in the kernel: by event mask where it has one (Linux 6.6 on), and by a socket filter everywhere,
/// so that it wakes nobody. Needs CAP_NET_ADMIN and the initial pid and user namespace;
/// Documentation/driver-api/connector.rst.
class ProcConnector final : public ProcSource {
  public:
    /// Subscribed when it returns: whatever happens to a process from now on is reported or counted as lost.
    static Result<std::unique_ptr<ProcConnector>> open(Wanted wanted);
    static Result<std::unique_ptr<ProcConnector>> open() { return open(Wanted{}); }
    ~ProcConnector() override;

    [[nodiscard]] int fd() const override;
    [[nodiscard]] bool has_events() const override;
    [[nodiscard]] Result<void> set_filter(Wanted wanted) override;
    /// Messages that do not come from the kernel are dropped. No allocation.
    Drained drain(const std::function<void(const ProcEvent&)>& sink,
                  const std::function<bool()>& out_of_time) override;

  private:
    struct Connection;
    explicit ProcConnector(std::unique_ptr<Connection> connection);
    std::unique_ptr<Connection> connection_;
};

} // namespace affinityd::host
