// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace affinityd::accounting {

/// NIC, by what stays when it is renamed -> sockets with an address of it.
using NicSockets = std::map<std::string, unsigned>;

/// How much each NIC serves one process: its sockets with an address of the NIC, averaged over the last
/// minutes. Connections come and go; a process that followed each of them would never rest.
class NicShares {
  public:
    /// An old count weighs half after this time.
    static constexpr std::chrono::seconds half_life{120};

    /// What a search saw. Nothing at all says nothing: a server without clients is still served as it was.
    /// `now`: of any clock that only goes forward.
    void add(const NicSockets& seen, std::chrono::seconds now);
    /// The NICs that serve it, ascending: those that have had a tenth of its sockets, as long as they have a
    /// thirtieth.
    [[nodiscard]] std::vector<std::string> names() const;

  private:
    struct Share {
        std::string nic;
        double sockets = 0; ///< on average
        bool serves = false;
    };
    std::vector<Share> shares_; ///< ascending by name
    std::chrono::seconds counted_{};
};

} // namespace affinityd::accounting
