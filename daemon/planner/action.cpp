// SPDX-License-Identifier: Apache-2.0
#include "planner/action.hpp"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityd::planner {

namespace {

/// To what a task in a slot is bound.
std::string_view bound_to(policy::Bind bind) {
    constexpr std::array<std::string_view, 5> texts{"its CPU", "what cpus has of its core",
                                                    "what cpus has of its cache group",
                                                    "what cpus has of its NUMA node", "all of cpus"};
    return texts[static_cast<std::size_t>(bind)];
}

std::string among(const Measured& measured) {
    const auto text = fmt::format(", among CPUs {}", measured.group.to_list());
    if (measured.ns > 0) return text + fmt::format(", by measured latency, {:.1f} ns", measured.ns);
    return text + (measured.is_foreign ? ", by topology, as latencies were measured on another machine"
                                       : ", by topology, as no latencies were measured here");
}

struct Printer {
    const std::string& policy;

    std::string operator()(const InSlot& reason) const {
        std::string text = "policy " + policy;
        if (reason.rule > 0) text += fmt::format(", thread rule {}", reason.rule);
        if (reason.kind == DistributionId::Kind::in_group)
            text += ", kept together with its process";
        else if (reason.kind == DistributionId::Kind::all_lanes)
            text += ", a lane of its interfaces";
        else if (reason.kind == DistributionId::Kind::lanes)
            text += ", the lane of " + reason.nics;
        if (reason.measured) text += among(*reason.measured);
        return text + fmt::format(": slot {}, bound to {}", reason.slot.to_list(), bound_to(reason.bind));
    }
    std::string operator()(const Settling& reason) const {
        return fmt::format("policy {}: it is new, and may use all of its CPUs, {}, until it has settled",
                           policy, reason.cpus.to_list());
    }
    std::string operator()(const OnLane& reason) const {
        const bool is_near_another = !reason.near.empty() && reason.near != reason.nic;
        std::string where;
        if (!reason.near.empty()) where = " near " + (is_near_another ? reason.near : "it");
        if (reason.model == policy::Model::full)
            where += is_near_another ? ", with the tasks that both serve" : ", with the tasks it serves";
        const auto queue = reason.queue ? fmt::format("queue {}", *reason.queue) : std::string("a queue");
        const char* model = reason.model == policy::Model::full ? "full" : "irq";
        if (!reason.apart.empty())
            return fmt::format("{}, separate: {} of {} on CPU {}, beside its lane on core {}{}", model, queue,
                               reason.nic, reason.apart.to_list(), reason.lane.to_list(), where);
        return fmt::format("{}: {} of {} on core {}{}", model, queue, reason.nic, reason.lane.to_list(),
                           where);
    }
    std::string operator()(Steering reason) const {
        switch (reason) {
        case Steering::xps_lane:
            return "XPS: sent from the CPUs of its lane";
        case Steering::rps_off:
            return "RPS off: it would carry packets away from the lane";
        case Steering::rfs_queue:
            return "RFS: to the lane of the task that reads";
        case Steering::rfs_machine:
            return "RFS: where RPS is used";
        case Steering::rfs_flows:
            return "steer: flows: packets go on to the CPU of the thread that reads them, which costs an "
                   "interrupt between CPUs where they arrive elsewhere";
        case Steering::named_irq:
            return "policy " + policy + ", irqs: on one of its cores";
        case Steering::accept:
            return "steer: what arrives on its worker's lane";
        }
        return {};
    }
    std::string operator()(const RpsSpread& reason) const {
        return fmt::format("RPS spreads its {} {} over {} cores", reason.queues,
                           reason.queues == 1 ? "queue" : "queues", reason.lanes);
    }
    std::string operator()(const KeptOff& reason) const {
        return fmt::format("kept off CPU{} {}: exclusive of {}", reason.cpus.count() == 1 ? "" : "s",
                           reason.cpus.to_list(), fmt::join(reason.by, ", "));
    }
    std::string operator()(Restored reason) const {
        switch (reason) {
        case Restored::unwanted:
            return "no policy wants it any more: its own mask back";
        case Restored::left_alone:
            return "policy " + policy + " leaves it alone: its own mask back";
        case Restored::asked_for:
            return "put back";
        }
        return {};
    }
    std::string operator()(const FencedUnit&) const { return "means: cpuset"; }
};

} // namespace

std::string to_string(const Reason& reason, const std::string& policy) {
    return std::visit(Printer{policy}, reason);
}

} // namespace affinityd::planner
