// SPDX-License-Identifier: Apache-2.0
#include "behaviours/list.hpp"
#include "behaviours/neighbours/other_writers.hpp"
#include "inventory/process_scan.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace affinityd::behaviours {

namespace {

/// Finds other programs that set masks, and keeps irqbalance off the interrupts under policy.
class Neighbours final : public Behaviour {
  public:
    explicit Neighbours(Shared& shared)
        : shared_(shared), writers_(shared.root, {shared.settings.runtime_dir, shared.settings.irqbalance_dir,
                                                  shared.acts()}) {}
    void begin_pass() override { writers_.begin_pass(); }
    void saw(const inventory::ProcessScan& scan, bool is_in_pass) override {
        const int pid = scan.id().tid;
        if (scan.is_kernel()) return;
        if (is_in_pass)
            writers_.see(pid, scan.comm());
        else if (writers_.is_new(pid, scan.comm()) && shared_.acts() && !interrupts().empty())
            shared_.want_pass(); // which tells it which are under policy
    }
    Slices after_tasks() override {
        writers_.finish_pass(interrupts());
        log_notices();
        co_return;
    }
    int fd() const override { return writers_.fd(); }
    void readable() override {
        writers_.handle();
        log_notices();
    }
    void begin_stop(bool is_handover) override {
        if (!is_handover && shared_.acts()) writers_.stop();
    }
    bool is_quiet() const override { return !writers_.is_talking(); }
    void report(status::Overview& into) const override { into.other_writers = writers_.list(); }

  private:
    void log_notices() {
        for (const auto& notice : writers_.take_notices())
            shared_.log.warn(notice);
    }
    /// Interrupts under policy, each once; those that are only kept off CPUs once they had to be.
    [[nodiscard]] std::vector<unsigned> interrupts() const {
        std::vector<unsigned> irqs;
        for (const auto& target : shared_.current.placements().queues)
            if (const auto* irq = std::get_if<planner::IrqMask>(&target.subject);
                irq != nullptr && (target.off.empty() || shared_.journal().contains(target.subject)))
                irqs.push_back(irq->irq);
        std::ranges::sort(irqs);
        irqs.erase(std::ranges::unique(irqs).begin(), irqs.end());
        return irqs;
    }
    Shared& shared_;
    OtherWriters writers_; ///< irqbalance, TuneD and others
};

} // namespace

void add_neighbours(Daemon& daemon, const Bus&) { daemon.add(std::make_unique<Neighbours>(daemon.shared())); }

} // namespace affinityd::behaviours
