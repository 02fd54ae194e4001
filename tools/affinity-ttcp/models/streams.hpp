// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/exchange.hpp"
#include "affinity-ttcp/engine/figures.hpp"
#include "affinity-ttcp/engine/latency_counts.hpp"
#include "affinity-ttcp/engine/shared.hpp"
#include "affinity-ttcp/engine/socket.hpp"
#include "affinity-ttcp/engine/worker.hpp"
#include "affinity-ttcp/models/gate.hpp"
#include "affinity-ttcp/models/round.hpp"

#include <expected>
#include <utility>
#include <vector>

namespace affinityd::ttcp {

constexpr double connect_seconds = 10; ///< for each connection

/// One connection over each path of a testbed, each end a process of its own. They connect, wait at the gate
/// and begin together. With Work::answer the transmitters ask and the receivers answer. Processes that still
/// run end with this object.
class Streams {
  public:
    Streams(const Testbed& testbed, const RoundSetup& setup, Model model)
        : testbed_(testbed), setup_(setup), model_(model) {}

    [[nodiscard]] Result<void> start(Gate& gate);
    [[nodiscard]] std::expected<void, RoundFault> wait_until_connected(Gate& gate, double until);
    /// After the gate was opened. In the order in which they end, so that the first fault gives the reason.
    [[nodiscard]] std::expected<Ends, RoundFault> collect(double until);
    /// Of all connections together, once collected; empty but with Work::answer.
    [[nodiscard]] LatencyCounts latencies() const;

  private:
    [[nodiscard]] Result<void> start_path(std::size_t number, Gate& gate);
    [[nodiscard]] Result<Worker> start_receiver(std::size_t path, Gate& gate, const host::Fd& listener);
    [[nodiscard]] Result<Worker> start_transmitter(std::size_t path, Gate& gate, const Address& target);
    [[nodiscard]] CpuSet cpus_of(std::size_t path, bool under_test) const;
    [[nodiscard]] bool is_receiver_under_test() const { return setup_.point.work != Work::transmit; }
    [[nodiscard]] SocketOptions socket_options() const;
    /// `wait`: as that of a Load.
    [[nodiscard]] Exchange exchange(std::function<void()> wait) const;
    [[nodiscard]] Load load(std::function<void()> wait) const;
    [[nodiscard]] static RoundFault cause_of(RoundFault fault, std::vector<Worker*> others);
    [[nodiscard]] Worker& worker(std::size_t number);

    const Testbed& testbed_;
    const RoundSetup& setup_;
    Model model_;
    std::vector<Worker> transmitters_, receivers_;
    std::vector<Shared<LatencyCounts>> latencies_; ///< of the transmitters, with Work::answer
};

} // namespace affinityd::ttcp
