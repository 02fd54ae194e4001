// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace affinityd::enforcer {

/// irqbalance's socket, by which root may ask for its settings and replace its list of banned interrupts
/// while it runs. Its files are never touched. Source: irqbalance(1), "API". Each call is a connection of its
/// own and waits at most 300 ms.
class Irqbalance {
  public:
    explicit Irqbalance(std::string folder = "/run/irqbalance") : folder_(std::move(folder)) {}

    /// Sockets of running instances, by name; the name holds the PID. Empty if none runs.
    [[nodiscard]] std::vector<std::string> sockets() const;
    /// Interrupts it leaves alone now, ascending.
    [[nodiscard]] Result<std::vector<unsigned>> banned(const std::string& socket) const;
    /// Replaces that list. An Error also if the list is longer than irqbalance reads (255 bytes).
    [[nodiscard]] Result<void> ban(const std::string& socket, const std::vector<unsigned>& irqs) const;

  private:
    [[nodiscard]] Result<std::string> ask(const std::string& socket, const std::string& request,
                                          bool wants_answer) const;
    std::string folder_;
};

/// The interrupts of "SLEEP 10 IRQ 30 LOAD 0 DIFF 0 CLASS 5 ... BANNED 0": what "setup" is answered with. Any
/// bytes will do.
[[nodiscard]] std::vector<unsigned> parse_irqbalance_setup(std::string_view text);

} // namespace affinityd::enforcer
