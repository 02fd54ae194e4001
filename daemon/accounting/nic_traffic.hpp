// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::accounting {

/// What each interface has carried since it was first read, and its part of the network's softirq time.
/// The softirq time is the machine's; an interface's part is taken to be its part of the bytes. That is an
/// estimate, and on kernels without CONFIG_IRQ_TIME_ACCOUNTING the processes' own time already holds it: it
/// is shown beside their time, never added to it.
class NicTraffic {
  public:
    struct Total {
        std::uint64_t bytes = 0; ///< received and sent; over loopback each byte does both and counts once
        double softirq_seconds = 0;
    };
    using Totals = std::map<std::string, Total>; ///< by interface

    /// `root` must outlive it.
    explicit NicTraffic(const host::Root& root) : root_(root) {}

    /// Begins a reading of these interfaces; all others are forgotten. A reading under way is abandoned.
    void begin(std::vector<std::string> nics);
    /// Reads counters until `out_of_time` says so. True: the totals are up to date.
    [[nodiscard]] bool step(const std::function<bool()>& out_of_time);
    /// A counter that starts over, or an interface that was not there, adds nothing.
    [[nodiscard]] const Totals& totals() const { return totals_; }

  private:
    struct Reading {
        std::vector<std::string> nics;
        std::size_t next = 0;
        std::map<std::string, std::uint64_t> grown; ///< bytes since the reading before
    };
    [[nodiscard]] std::optional<std::uint64_t> read(const std::string& nic) const;
    void take(const std::string& nic);
    void finish();

    const host::Root& root_;
    Reading reading_;
    std::map<std::string, std::optional<std::uint64_t>> counters_; ///< as last read
    std::optional<double> softirqs_; ///< network softirq seconds of the machine, as last read
    Totals totals_;
};

} // namespace affinityd::accounting
