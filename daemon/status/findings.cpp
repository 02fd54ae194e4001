// SPDX-License-Identifier: Apache-2.0
#include "status/findings.hpp"

#include <algorithm>
#include <array>

#include <fmt/args.h>
#include <fmt/format.h>

namespace affinityd::status {

namespace {

using enum Severity;

struct FindingText {
    const char* id;
    Severity severity;
    const char *sentence, *mend; ///< {0}, {1} ...: the values that were seen
    const char* many = nullptr;  ///< the sentence for several subjects
};
constexpr const char* bpf_needs = "affinityd(8) says which capabilities and kernel options BPF needs";
constexpr const char* next_pass = "no action is needed; at once: affinityctl apply";

// clang-format off
constexpr auto texts = std::to_array<FindingText>({
    // Threads and queues in a state: {0} policy, {1} why, {2} programs that are not to blame, {3} the first of them.
    {"refused", attention, "could not be set{1}", "affinityctl status {0} --failed", "could not be set; the first is {3}{1}"},
    {"refused", attention, "could not be set{1}",
     "systemctl cat affinityd; remove ReadOnlyPaths= or ProtectKernelTunables= from its drop-in; then systemctl daemon-reload; systemctl restart affinityd (in a container: mount the machine's and say so with --proc)",
     "could not be set; the first is {3}{1}"},
    {"fight", attention, "is fought over: another program{2} keeps changing it", "grep -rlE 'smp_affinity|taskset' /etc /usr/local; stop what it names; then affinityctl apply",
     "are fought over: another program{2} keeps changing them; the first is {3}"},
    {"cpuset", attention, "may not leave its cpuset for the CPUs of the policy", "affinityctl status {0} --failed", "may not leave their cpuset for the CPUs of the policy; the first is {3}"},
    {"drift", settling, "was moved by another program; the next pass puts it right", next_pass, "were moved by another program; the next pass puts them right; the first is {3}"},
    {"drift", settling, "is not in place now; the next pass puts it right", next_pass, "are not in place now; the next pass puts them right; the first is {3}"},
    {"vector", attention, "is on another CPU, as its own has no interrupt vector left", "affinityctl status {0} --failed",
     "are on other CPUs, as theirs have no interrupt vector left; the first is {3}"},
    {"immovable", note, "cannot be moved, and stays where the kernel has it", "affinityctl status {0} --failed", "cannot be moved, and stay where the kernel has them; the first is {3}"},
    {"throughput", attention, "the last measurement{0} is {1} % below the median of those before", "affinityctl measure (a usual result clears this)"},
    {"claim", attention, "{1} barred to all others, and no process is under this policy now", "start its application, or affinityctl release {0}"},
    {"journal", attention, "the undo journal: {0}", ""},
    {"process", attention, "its command line cannot be read: its memory is on a file system that does not answer", "ps -fp {0}"},
    {"listener", attention, "the list of listeners cannot be read: {0}", ""},
    {"listener", attention, "more sockets listen on ports of policies than are read", "ss -ltunp"},
    {"events", attention, "new processes and threads are placed up to {0} s late (services about 1 s), as the kernel sends none: {1}", "{2}"},
    {"rights", attention, "programs and sockets of other users' processes are not seen", "exe, listen and nics: auto need CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"},
    {"rights", attention, "{0} of the changes now wanted {1} not permitted", "tasks of other users need CAP_SYS_NICE; interrupts and queues need root, and a /proc and /sys that can be written"},
    {"nic", attention, "the way to the NIC of process {0} is lost after {1}: {2}", "name the NIC in the policy: nics: {3}"},
    {"own-cpus", note, "{0} CPUs of {1} own ({2}), which this policy replaces", "remove CPUAffinity= there, or write prior: keep"},
    {"steering", attention, "nothing is steered or counted: {0}", bpf_needs},
    {"steering", attention, "other programs open listeners on more addresses than can be noted: for moments of the last minute connections were the kernel's choice", "ss -ltnp"},
    {"steering", attention, "{0} network namespaces are not steered: at most {1} are, and {2} of one user", "use steer: none where it is not worth it"},
    {"steering", attention, "{0}", bpf_needs},
    {"steering", attention, "{0} (network namespace {1}): the rest is the kernel's choice", "ss -ltunp"},
    {"unit", attention, "its processes are in no unit of the system: affinity alone is used", "start them as a service of systemd"},
    {"unit", attention, "cpusets of units need the unified cgroup hierarchy: affinity alone is used", "boot with systemd.unified_cgroup_hierarchy=1, or leave means out"},
    {"unit", attention, "{0}: affinity alone is used", "systemctl status {1}"},
    {"pods", attention, "neither containerd nor CRI-O says here which pod a container belongs to", "a daemon in a container needs these folders of the host: contrib/container/base/daemonset.yaml"},
    {"irqbalance", attention, "irqbalance (pid {0}) may move {1} of the {2} interrupts that are under policy", "systemctl disable --now irqbalance"},
    {"sched-ext", attention, "the sched_ext scheduler {0} chooses the CPUs of all tasks by its own rules", "systemctl stop scx_loader scx"},
    {"tuned", attention, "TuneD (pid {0}) runs profile {1}, which sets masks of tasks and interrupts{2}", "tuned-adm profile throughput-performance"},
    {"isolated-cpus", attention, "policy {0} has isolated CPUs ({1}) among others ({2}): the kernel balances no load over isolated CPUs", "policy {0}: cpus: {2}"},
    {"irq-on-isolated", attention, "{0} on CPUs that are set apart ({1}): IRQ {2} ({3}) came {4} times to CPU {5}",
     "a policy: {{version: 1, affinity: irq, irqs: [{6}], cpus: \"housekeeping - ({1})\"}}"},
    {"irq-on-container", attention, "{0} to CPUs {1}, which only {2}: IRQ {3} ({4})", "a policy: {{version: 1, affinity: irq, {5}, cpus: \"housekeeping - ({1})\"}}"},
    {"service-on-container", attention, "{0} may run on CPUs {1}, which only {2}: {3}", "a policy: {{version: 1, match: {{unit: {4}}}, cpus: \"housekeeping - ({1})\", bind: set}}"},
    {"isolated-container", attention, "{0} of {1} share isolated {2} of {3}: the kernel balances no load over isolated CPUs",
     "a policy: {{version: 1, match: {4}, cpus: \"{3}\", spread: cpu, bind: cpu}}"},
    {"queues-on-one-cpu", attention, "all {0} of {1} fire on CPU {2} of {3} (at least {4} interrupts each)", "a policy: {{version: 1, affinity: irq, {5}}}"},
    {"queues-on-one-node", attention, "all {0} of {1} fire on node {2}, {3}", "a policy: {{version: 1, affinity: irq, {4}}}"},
    {"queues-stacked", attention, "{0} of {1} fire on CPU {2}, and {3} near it, such as that of CPU {4}, take none of its {5}", "a policy: {{version: 1, affinity: irq, {6}}}"},
    {"nic-far", attention, "policy {0} runs on CPUs {1}, and none of them is on node {2}, where its NIC {3} is", "policy {0}: cpus: node:{2}"},
    {"few-queues", attention, "{1} has {2} for the {3} workers of policy {0}", "ethtool -L {1} {4} {5}"},
    {"rps-left", note, "{0} has {1} receive queues for {2} CPUs, and {3} of them still pass packets on to other CPUs (RPS)", "a policy: {{version: 1, affinity: irq, nics: [{0}]}}"},
    {"xps-unset", note, "{0} sends through {1} queues, and none has a map of CPUs (XPS)", "a policy: {{version: 1, affinity: irq, nics: [{0}]}}"},
    {"reuseport-off", note, "{1} workers of policy {0} take the connections of port {2} from one socket, so none can be steered",
     "a socket for each worker: \"listen {2} reuseport;\" in nginx, SO_REUSEPORT in other servers"},
    {"unknown-label", attention, "{1} of {0} with labels of no known form, such as {2}, are dealt out without regard to queues",
     "/etc/affinityd/labels.d/local.yaml: {{version: 1, labels: [{{label: \"{3}\", kind: {4}}}]}}"},
    {"managed-irq", note, "the kernel lets no program move {1} that policy {0} wants placed, such as IRQ {2} ({3})", "policy {0}: leave {3} out of irqs, or its interface out of nics"},
    {"boot-words", note, "{0} of policy {1} (isolate: true) {2} the timer tick and callbacks of RCU, which no program can move",
     "on the kernel's command line: nohz_full={3} rcu_nocbs={3} isolcpus=managed_irq,{3}"},
    {"two-nodes", attention, "{1} of policy {0} should be on one node: pid {2}", "affinityctl apply"},
    {"far-memory", attention, "{1} of policy {0}: pid {2} ({3}) runs on node {4}, and {5} of its {6} MiB are on other nodes", "policy {0}: memory: follow"},
    {"powersave", note, "{0} of {1} CPUs keep to a low frequency (governor {2}), so measurements show that and not affinity", "cpupower frequency-set -g performance"},
    {"deep-idle", note, "the first CPU went {1} times into state {0}, which takes {2} us to leave: measurements show that too", "cpupower idle-set -D {3}"},
    {"steal", attention, "other guests of the host took {0} % of the CPU time of this one since it started", "on the host: virsh vcpupin GUEST VCPU CPU"},
});
// clang-format on
static_assert(texts.size() == static_cast<std::size_t>(Ailment::steal) + 1);

} // namespace

Finding finding(Ailment kind, std::string policy, std::string subject, const std::vector<std::string>& seen,
                bool is_many) {
    fmt::dynamic_format_arg_store<fmt::format_context> values;
    for (const auto& value : seen)
        values.push_back(value);
    const auto& text = texts.at(static_cast<std::size_t>(kind));
    const auto* sentence = is_many && text.many != nullptr ? text.many : text.sentence;
    return {{std::move(policy), std::move(subject), fmt::vformat(sentence, values),
             fmt::vformat(text.mend, values)},
            text.id,
            text.severity};
}

bool is_placed(const planner::Placements& placements, const netdev::Nic& nic, const netdev::Queue& queue) {
    return std::ranges::any_of(placements.queues, [&](const planner::QueueTarget& target) {
        const auto* map = std::get_if<machine::SteeringMask>(&target.subject);
        return map != nullptr && target.off.empty() && map->nic == nic.name &&
               map->direction == queue.direction && map->queue == queue.index;
    });
}

std::optional<Finding> find_rps_left(const machine::Machine& machine, const planner::Placements& placements,
                                     const netdev::Nic& nic) {
    std::size_t receive = 0, left = 0;
    for (const auto& queue : nic.queues) {
        if (queue.direction != netdev::Direction::rx) continue;
        ++receive;
        if (queue.steering && !queue.steering->empty() && !is_placed(placements, nic, queue)) ++left;
    }
    const auto cpus = machine.topology.online.count();
    if (!nic.up || nic.device.empty() || cpus < 2 || receive < cpus || left == 0) return std::nullopt;
    return finding(Ailment::rps_left, "", "",
                   {nic.name, std::to_string(receive), std::to_string(cpus), std::to_string(left)});
}

} // namespace affinityd::status
