// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/survey/doctor.hpp"

#include "base/text.hpp"
#include "machine/vectors.hpp"
#include "netdev/nic.hpp"
#include "planner/matcher.hpp"
#include "planner/slots.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl::survey {

namespace irq = affinityd::irq;
namespace machine = affinityd::machine;
namespace netdev = affinityd::netdev;
namespace planner = affinityd::planner;
namespace policy = affinityd::policy;
namespace status = affinityd::status;
namespace topology = affinityd::topology;
using affinityd::counted;
using affinityd::CpuSet;
using affinityd::grouped;
using affinityd::is_digit;
using affinityd::parse_number;
using affinityd::split_words;
using planner::groups_of;

namespace {

using policy::Model;
using status::Ailment;

// From these on, a figure is a finding. Below them healthy machines are found, too.
constexpr double most_stolen = 0.01;             ///< of the CPU time
constexpr std::uint64_t most_idle_latency = 500; ///< microseconds: deeper than states of servers are
constexpr std::uint64_t least_interrupts = 1000; ///< of a queue that is used
constexpr std::uint64_t least_far_kib = 64U << 10;
constexpr double least_far_share = 0.25;

std::vector<const netdev::Queue*> queues_of(const netdev::Nic& nic, netdev::Direction direction, auto of) {
    std::vector<const netdev::Queue*> queues;
    for (const auto& queue : nic.queues)
        if (queue.direction == direction && of(queue)) queues.push_back(&queue);
    return queues;
}

std::size_t rx_count(const netdev::Nic& nic) {
    return queues_of(nic, netdev::Direction::rx, [](const auto&) { return true; }).size();
}

/// A label without the number at its end.
std::string_view stem_of(std::string_view label) {
    while (!label.empty() && is_digit(label.back()))
        label.remove_suffix(1);
    return label;
}

using Lines = std::vector<const irq::Irq*>;

/// Interrupts whose labels differ in the number at their end, by the rest: queues of disks and of other
/// devices. Queues of NICs are left out.
std::map<std::string_view, Lines> families_of(const machine::Machine& machine,
                                              const std::set<unsigned>& of_nics) {
    std::map<std::string_view, Lines> families;
    for (const auto& line : machine.irqs.irqs)
        if (!line.actions.empty() && line.requested && !of_nics.contains(line.number))
            families[stem_of(line.actions.front())].push_back(&line);
    std::erase_if(families, [](const auto& family) { return family.second.size() < 2; });
    return families;
}

/// Each has CPUs of its own: most likely the kernel manages them (nvme, virtio-blk), and older kernels do not
/// show that.
bool are_apart(const Lines& lines) {
    CpuSet cpus;
    return std::ranges::all_of(lines, [&](const irq::Irq* line) {
        const bool is_apart = !cpus.intersects(*line->requested);
        cpus |= *line->requested;
        return is_apart;
    });
}

std::uint64_t times_of(const irq::Irq& line) {
    return std::accumulate(line.counts.begin(), line.counts.end(), std::uint64_t{0});
}

/// The CPU to which an interrupt comes; no value: not known.
std::optional<unsigned> comes_to(const irq::Irq& line, const std::vector<unsigned>& columns) {
    for (const auto& mask : {line.effective, line.requested})
        if (mask && mask->count() == 1) return mask->first();
    std::optional<unsigned> only;
    for (std::size_t i = 0; i < std::min(columns.size(), line.counts.size()); ++i) {
        if (line.counts[i] == 0) continue;
        if (only) return std::nullopt;
        only = columns[i];
    }
    return only;
}

/// The label has this name in it, and not as a part of a longer one.
bool has_word(std::string_view label, std::string_view name) {
    const auto is_of_word = [](char c) {
        return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    for (auto at = label.find(name); at != std::string_view::npos; at = label.find(name, at + 1)) {
        const auto end = at + name.size();
        if ((at == 0 || !is_of_word(label[at - 1])) && (end == label.size() || !is_of_word(label[end])))
            return true;
    }
    return false;
}

/// The first few of these.
std::string few_of(const std::vector<std::string>& texts) {
    constexpr std::ptrdiff_t most = 4;
    const auto shown = std::min(most, std::ssize(texts));
    const auto text = fmt::format("{}", fmt::join(texts.begin(), texts.begin() + shown, ", "));
    return shown < std::ssize(texts) ? fmt::format("{} and {} more", text, std::ssize(texts) - shown) : text;
}

/// A label of an interface as a form of labels, and the kind that a number in it stands for.
std::pair<std::string, std::string> form_of(std::string label, const netdev::Nic& nic) {
    for (const auto& [word, sign] :
         {std::pair(nic.name, "{IF}"), std::pair(nic.pci, "{PCI}"), std::pair(nic.virtio, "{VIRTIO}")})
        if (const auto at = label.find(word); !word.empty() && at != std::string::npos)
            label.replace(at, word.size(), sign);
    auto end = label.size();
    while (end > 0 && !is_digit(label[end - 1]))
        --end;
    auto begin = end;
    while (begin > 0 && is_digit(label[begin - 1]))
        --begin;
    if (begin == end) return {label, "data"};
    return {label.replace(begin, end - begin, "{N}"), "rxtx"};
}

class Examination {
  public:
    explicit Examination(const Examined& seen) : seen_(seen), topology_(seen.machine.topology) {
        for (const auto& target : seen.placements.queues)
            if (const auto* irq = std::get_if<machine::IrqMask>(&target.subject);
                irq != nullptr && target.off.empty())
                placed_irqs_.insert(irq->irq);
        for (const auto& [name, vectors] : seen.machine.vectors)
            for (const auto& vector : vectors)
                nic_irqs_.insert(vector.irq);
        families_ = families_of(seen.machine, nic_irqs_);
        apart_ = topology_.isolated | topology_.nohz_full | seen.placements.claimed;
    }

    std::vector<Finding> run() {
        other_programs();
        interrupts_set_apart();
        containers();
        for (const auto& nic : seen_.machine.nics)
            if (nic.up && !nic.device.empty()) interface(nic);
        // Fewer may be those of several devices of a kind, such as sound cards or ports of USB.
        for (const auto& [stem, lines] : families_)
            if (lines.size() > 2 && stem != lines.front()->actions.front() &&
                lines.front()->chip.contains("MSI"))
                queues({std::string(stem) + "*", "irqs", topology_.online, std::nullopt}, lines);
        for (std::size_t i = 0; i < seen_.policies.policies.size(); ++i)
            if (const auto* resolved = seen_.placements.find(seen_.policies.policies[i].name);
                resolved != nullptr && resolved->active)
                policy(i, *resolved);
        measuring();
        for (const auto& nic : seen_.machine.nics)
            if (nic.up && !nic.device.empty()) sent_by(nic);
        std::ranges::stable_sort(findings_, std::ranges::greater{}, &Finding::severity);
        return std::move(findings_);
    }

  private:
    void add(Ailment kind, const std::vector<std::string>& seen) {
        findings_.push_back(status::finding(kind, "", "", seen));
    }

    void other_programs() {
        const auto loose = std::ranges::count_if(
            placed_irqs_, [&](unsigned irq) { return !seen_.spared_irqs.contains(irq); });
        if (seen_.irqbalance != 0 && loose > 0)
            add(Ailment::irqbalance, {std::to_string(seen_.irqbalance), std::to_string(loose),
                                      std::to_string(placed_irqs_.size())});
        if (!seen_.scheduler.empty()) add(Ailment::sched_ext, {seen_.scheduler});
        constexpr std::array setting{"cpu-partitioning", "realtime"}; // and those derived from them
        const bool sets_masks =
            !seen_.tuned_cores.empty() || std::ranges::any_of(setting, [&](const char* name) {
                return seen_.tuned_profile.starts_with(name);
            });
        if (seen_.tuned != 0 && sets_masks)
            add(Ailment::tuned,
                {std::to_string(seen_.tuned), seen_.tuned_profile,
                 seen_.tuned_cores.empty() ? "" : " (isolated cores " + seen_.tuned_cores + ")"});
    }

    /// No policy has put it there, and it could be elsewhere.
    [[nodiscard]] bool is_free(const irq::Irq& line) const {
        if (line.actions.empty() || line.fixed || !line.writable || placed_irqs_.contains(line.number))
            return false;
        const auto family = families_.find(stem_of(line.actions.front()));
        return family == families_.end() || nic_irqs_.contains(line.number) || !are_apart(family->second);
    }

    /// Interrupts on CPUs that were set apart.
    void interrupts_set_apart() {
        const auto& table = seen_.machine.irqs;
        struct Stray {
            const irq::Irq* line;
            unsigned cpu;
            std::uint64_t count;
        };
        std::vector<Stray> strays;
        for (const auto& line : table.irqs) {
            if (!is_free(line)) continue;
            const auto& now = line.effective && !line.effective->empty() ? line.effective : line.requested;
            if (!now) continue;
            for (std::size_t i = 0; i < std::min(table.cpus.size(), line.counts.size()); ++i)
                if (const auto cpu = table.cpus[i];
                    line.counts[i] > 0 && now->contains(cpu) && apart_.contains(cpu)) {
                    strays.push_back({&line, cpu, line.counts[i]});
                    break;
                }
        }
        // Without other CPUs there is nowhere to go.
        if (strays.empty() || (topology_.housekeeping - apart_).empty()) return;
        const auto& worst = *std::ranges::max_element(strays, {}, &Stray::count);
        std::string labels;
        for (const auto& stray : strays)
            labels += fmt::format("{}\"{}\"", labels.empty() ? "" : ", ", stray.line->actions.front());
        add(Ailment::irq_on_isolated,
            {counted(strays.size(), "interrupt is", "interrupts are"), apart_.to_list(),
             std::to_string(worst.line->number), worst.line->actions.front(), grouped(worst.count),
             std::to_string(worst.cpu), labels});
    }

    /// Containers that have CPUs, and how well they have them.
    void containers() {
        for (const auto& group : seen_.groups)
            share_isolated(group);
        std::vector<const ExaminedGroup*> owners;
        std::size_t most = 0;
        for (const auto& group : seen_.groups)
            if (has_alone(group)) {
                owners.push_back(&group);
                most = std::max<std::size_t>(most, group.cpus.count());
            }
        const auto all_of = [&] {
            CpuSet cpus;
            for (const auto* owner : owners)
                cpus |= owner->cpus;
            return cpus - apart_; // of which there are findings
        };
        // Where containers have all CPUs among them, the widest have those that are left to everything.
        if (all_of().contains(topology_.housekeeping - apart_))
            std::erase_if(owners, [&](const auto* owner) { return owner->cpus.count() == most; });
        const CpuSet alone = all_of();
        if (alone.empty()) return;
        std::vector<std::string> names;
        for (const auto* owner : owners)
            if (std::ranges::find(names, owner->name) == names.end()) names.push_back(owner->name);
        const bool is_pod = owners.front()->kind == ExaminedGroup::Kind::pod;
        const auto have =
            names.size() > 1
                ? fmt::format("{} {} have (cpusets of {})", names.size(),
                              is_pod ? "pods of kubelet's CPU manager" : "containers", few_of(names))
            : is_pod ? "a pod of kubelet's CPU manager has (cpuset of " + names.front() + ")"
                     : "container " + names.front() + " has by its cpuset";
        interrupts_on(alone, have);
        services_on(alone, have);
    }

    /// There are other containers, and their cpusets leave its CPUs out.
    [[nodiscard]] bool has_alone(const ExaminedGroup& group) const {
        const auto is_container = [](const ExaminedGroup& one) {
            return one.kind == ExaminedGroup::Kind::container || one.kind == ExaminedGroup::Kind::pod;
        };
        std::size_t others = 0;
        for (const auto& other : seen_.groups) {
            if (&other == &group || !is_container(other)) continue;
            if (other.cpus.intersects(group.cpus)) return false;
            ++others;
        }
        return is_container(group) && others > 0 && !group.cpus.empty();
    }

    void interrupts_on(const CpuSet& alone, const std::string& have) {
        struct Stray {
            const irq::Irq* line;
            unsigned cpu;
        };
        std::vector<Stray> strays;
        std::set<std::string> nics;
        std::vector<std::string> labels;
        for (const auto& line : seen_.machine.irqs.irqs) {
            const auto cpu = comes_to(line, seen_.machine.irqs.cpus);
            if (!is_free(line) || times_of(line) == 0 || !cpu || !alone.contains(*cpu)) continue;
            strays.push_back({&line, *cpu});
            if (const auto nic = nic_of(line.number); nic.empty())
                labels.push_back(line.actions.front());
            else
                nics.insert(nic);
        }
        if (strays.empty()) return;
        const auto& first = *std::ranges::min_element(strays, {}, &Stray::cpu);
        std::string subjects;
        if (!nics.empty()) subjects = "nics: " + yaml_list({nics.begin(), nics.end()});
        if (!labels.empty()) subjects += (subjects.empty() ? "irqs: " : ", irqs: ") + yaml_list(labels);
        add(Ailment::irq_on_container,
            {counted(strays.size(), "interrupt comes", "interrupts come"), alone.to_list(), have,
             std::to_string(first.line->number), first.line->actions.front(), subjects});
    }

    void services_on(const CpuSet& alone, const std::string& have) {
        constexpr std::size_t most = 8; // units that a policy names one by one
        std::vector<std::string> names;
        for (const auto& group : seen_.groups)
            if (group.kind == ExaminedGroup::Kind::service &&
                std::ranges::any_of(group.threads,
                                    [&](const auto& thread) { return thread.cpus.intersects(alone); }))
                names.push_back(group.name);
        if (names.empty()) return;
        add(Ailment::service_on_container,
            {counted(names.size(), "system service"), alone.to_list(), have, few_of(names),
             names.size() > most ? "\"*.service\"" : yaml_list(names)});
    }

    /// Several threads that may each have the same isolated CPUs.
    void share_isolated(const ExaminedGroup& group) {
        CpuSet cpus, used;
        std::size_t threads = 0;
        for (const auto& thread : group.threads) {
            if (thread.cpus.count() < 2 || !topology_.isolated.contains(thread.cpus)) continue;
            ++threads;
            cpus |= thread.cpus;
            if (thread.cpus.contains(thread.last_cpu)) used.insert(thread.last_cpu);
        }
        if (threads < 2 || used.count() >= std::min<std::size_t>(threads, cpus.count())) return;
        if (used.empty()) used = CpuSet{cpus.first()};
        add(Ailment::isolated_container,
            {counted(threads, "thread"), group.name, (used.count() > 1 ? "CPUs " : "CPU ") + used.to_list(),
             cpus.to_list(), group.match});
    }

    [[nodiscard]] std::string nic_of(unsigned irq) const {
        for (const auto& [name, vectors] : seen_.machine.vectors)
            if (std::ranges::find(vectors, irq, &machine::Vector::irq) != vectors.end()) return name;
        return "";
    }

    /// A device with queues, as a policy names it.
    struct Device {
        std::string name, key;
        CpuSet near;
        std::optional<unsigned> node; ///< no value: not known
    };

    /// Where the interrupts of a device's queues come; under policy, or where the kernel manages them, it is
    /// not asked.
    void queues(const Device& device, const Lines& lines) {
        std::map<unsigned, std::size_t> on;
        std::uint64_t least = ~std::uint64_t{0};
        std::size_t count = 0;
        CpuSet used;
        for (const auto* line : lines) {
            if (!is_free(*line)) return;
            const auto times = times_of(*line);
            if (times < least_interrupts) continue;
            const auto cpu = comes_to(*line, seen_.machine.irqs.cpus);
            if (!cpu) return;
            least = std::min(least, times);
            ++on[*cpu];
            ++count;
            used.insert(*cpu);
        }
        const CpuSet free = topology_.housekeeping - apart_;
        if (count < 2 || groups_of(topology_, policy::Bind::core, free).size() < 2) return;
        const auto queues = counted(count, count == lines.size() ? "queue" : "busy queue");
        const auto subject = device.key + ": " + yaml_list({device.name});
        if (used.count() == 1)
            return add(Ailment::queues_on_one_cpu,
                       {queues, device.name, std::to_string(used.first()),
                        std::to_string(topology_.online.count()), grouped(least), subject});
        if (const auto node = topology_.nodes.size() > 1 ? node_of(used) : std::nullopt) {
            const auto cores = groups_of(topology_, policy::Bind::core, topology_.node(*node)->cpus).size();
            std::string why;
            if (device.node && *device.node != *node)
                why = fmt::format("and it is on node {}", *device.node);
            else if (count > cores)
                why = fmt::format("which has {}", counted(cores, "core"));
            if (!why.empty())
                return add(Ailment::queues_on_one_node,
                           {queues, device.name, std::to_string(*node), why, subject});
        }
        if (device.key != "nics") return;
        auto unused = groups_of(topology_, policy::Bind::core, free & device.near);
        std::erase_if(unused, [&](const CpuSet& core) { return core.intersects(used); });
        const auto most = std::ranges::max_element(on, {}, [](const auto& one) { return one.second; });
        if (most->second > 1 && !unused.empty())
            add(Ailment::queues_stacked,
                {counted(most->second, "queue"), device.name, std::to_string(most->first),
                 counted(unused.size(), "core"), std::to_string(unused.front().first()), queues, subject});
    }

    void interface(const netdev::Nic& nic) {
        if (auto left = status::find_rps_left(seen_.machine, seen_.placements, nic))
            findings_.push_back(std::move(*left));
        Lines lines;
        for (const auto& vector : seen_.machine.vectors_of(nic.name))
            if (const auto* line = seen_.machine.irqs.find(vector.irq);
                line != nullptr && irq::is_data(vector.kind) && vector.kind != irq::Kind::tx)
                lines.push_back(line);
        queues({nic.name, "nics", machine::near_cpus(seen_.machine, nic), nic.node}, lines);
        std::vector<std::string> unknown;
        for (const auto& vector : seen_.machine.vectors_of(nic.name))
            if (!vector.known && !vector.label.empty() && irq::is_data(vector.kind))
                unknown.push_back(vector.label);
        // Without a list of the device's interrupts, a label of no known form is no vector.
        for (const auto& line : seen_.machine.irqs.irqs)
            if (!line.actions.empty() && !nic_irqs_.contains(line.number) &&
                has_word(line.actions.front(), nic.name))
                unknown.push_back(line.actions.front());
        if (unknown.empty()) return;
        const auto [form, kind] = form_of(unknown.front(), nic);
        add(Ailment::unknown_label,
            {nic.name, counted(unknown.size(), "interrupt"), unknown.front(), form, kind});
    }

    void sent_by(const netdev::Nic& nic) {
        const auto all = queues_of(nic, netdev::Direction::tx,
                                   [](const auto& queue) { return queue.steering.has_value(); });
        if (all.size() > 1 && std::ranges::all_of(all, [&](const auto* queue) {
                return queue->steering->empty() && !status::is_placed(seen_.placements, nic, *queue);
            }))
            add(Ailment::xps_unset, {nic.name, std::to_string(all.size())});
    }

    void policy(std::size_t at, const planner::ResolvedPolicy& resolved) {
        const auto& policy = *resolved.policy;
        managed_interrupts(at, policy);
        if (const CpuSet ticking = resolved.allowed - topology_.nohz_full; policy.isolate && !ticking.empty())
            add(Ailment::boot_words,
                {(ticking.count() == 1 ? "CPU " : "CPUs ") + ticking.to_list(), policy.name,
                 ticking.count() == 1 ? "keeps" : "keep", resolved.allowed.to_list()});
        if (policy.model == Model::none || policy.model == Model::irq) return;
        const CpuSet isolated = resolved.allowed & topology_.isolated;
        if (const CpuSet others = resolved.allowed - isolated; !isolated.empty() && !others.empty())
            add(Ailment::isolated_cpus, {policy.name, isolated.to_list(), others.to_list()});
        std::vector<const ExaminedProcess*> processes;
        for (const auto& process : seen_.processes)
            if (process.policy == at) processes.push_back(&process);
        if (processes.empty()) return;
        nodes(policy, processes);
        if (policy.model != Model::full) return;
        const auto workers = workers_of(policy, processes);
        if (at < seen_.nics.size())
            for (const auto& name : seen_.nics[at])
                if (const auto* nic = seen_.machine.nic(name); nic != nullptr && !nic->device.empty())
                    server_nic(resolved, *nic, workers);
        if (policy.steer == policy::Steer::automatic || policy.steer == policy::Steer::accept)
            listeners(policy, processes);
    }

    void managed_interrupts(std::size_t at, const policy::Policy& policy) {
        if (policy.model != Model::irq && policy.model != Model::full) return;
        std::set<unsigned> of_nics;
        if (at < seen_.nics.size())
            for (const auto& name : seen_.nics[at])
                for (const auto& vector : seen_.machine.vectors_of(name))
                    if (irq::is_data(vector.kind)) of_nics.insert(vector.irq);
        std::vector<const irq::Irq*> managed;
        for (const auto& line : seen_.machine.irqs.irqs)
            if (!line.actions.empty() && (line.fixed || !line.writable) &&
                (of_nics.contains(line.number) ||
                 std::ranges::any_of(policy.irqs, [&](const policy::Pattern& pattern) {
                     return pattern.matches(line.actions.front()) ||
                            (!line.pci.empty() && pattern.matches(line.pci));
                 })))
                managed.push_back(&line);
        if (!managed.empty())
            add(Ailment::managed_irq,
                {policy.name, counted(managed.size(), "interrupt"), std::to_string(managed.front()->number),
                 managed.front()->actions.front()});
    }

    using Processes = std::vector<const ExaminedProcess*>;

    /// The processes that are no other's parent: a master accepts nothing.
    static Processes without_masters(const Processes& processes) {
        Processes workers;
        std::ranges::copy_if(processes, std::back_inserter(workers), [&](const auto* process) {
            return std::ranges::find(processes, process->pid, &ExaminedProcess::parent) == processes.end();
        });
        return workers;
    }

    /// Worker processes, or the threads of the one that a rule deals out; 0: not known.
    static std::size_t workers_of(const policy::Policy& policy, const Processes& processes) {
        const auto workers = without_masters(processes);
        if (workers.size() != 1) return workers.size();
        std::map<std::size_t, std::size_t> by_rule;
        const auto& threads = workers.front()->threads;
        for (unsigned i = 0; i < threads.size(); ++i)
            if (const auto rule = planner::Matcher::thread_rule(policy, threads[i].comm, i);
                rule && !policy.threads[*rule].leave && !policy.threads[*rule].placement.cpus)
                ++by_rule[*rule];
        std::size_t most = 0;
        for (const auto& [rule, count] : by_rule)
            most = std::max(most, count);
        return most;
    }

    void server_nic(const planner::ResolvedPolicy& resolved, const netdev::Nic& nic, std::size_t workers) {
        const auto* node = nic.node ? topology_.node(*nic.node) : nullptr;
        if (topology_.nodes.size() > 1 && node != nullptr && !node->cpus.empty() &&
            !resolved.allowed.intersects(node->cpus))
            add(Ailment::nic_far,
                {resolved.policy->name, resolved.allowed.to_list(), std::to_string(node->id), nic.name});
        const auto queues = rx_count(nic);
        // Each queue wants a core of its own, and the device may have no more.
        auto most = groups_of(topology_, policy::Bind::core, resolved.usable).size();
        const bool is_rx = nic.channels && !nic.channels->max_combined.value_or(0);
        if (nic.channels)
            most = std::min<std::size_t>(
                most, (is_rx ? nic.channels->max_rx : nic.channels->max_combined).value_or(most));
        if (queues > 0 && queues < workers && queues < most)
            add(Ailment::few_queues,
                {resolved.policy->name, nic.name, counted(queues, "receive queue"), std::to_string(workers),
                 is_rx ? "rx" : "combined", std::to_string(std::min(workers, most))});
    }

    void listeners(const policy::Policy& policy, const Processes& processes) {
        const auto workers = without_masters(processes);
        for (const auto& listener : seen_.listeners) {
            const auto sharing = std::ranges::count_if(workers, [&](const auto* process) {
                return std::ranges::find(listener.pids, process->pid) != listener.pids.end();
            });
            if (sharing > 1)
                add(Ailment::reuseport_off,
                    {policy.name, std::to_string(sharing), std::to_string(listener.port)});
        }
    }

    /// Threads and memory of processes that are to be on one node.
    void nodes(const policy::Policy& policy, const Processes& processes) {
        std::size_t astray = 0;
        std::string first_astray;
        struct Far {
            const ExaminedProcess* process;
            unsigned node;
            std::uint64_t kib, all;
        };
        std::vector<Far> far;
        for (const auto* process : processes) {
            if (!node_of(process->wanted)) continue;
            std::map<unsigned, std::size_t> threads;
            for (std::size_t i = 0; i < std::min(process->last_cpus.size(), process->threads.size()); ++i)
                // A thread that sleeps since its mask was set still tells of the CPU before.
                if (const auto cpu = process->last_cpus[i]; process->threads[i].allowed.contains(cpu))
                    if (const auto node = node_of(CpuSet{cpu})) ++threads[*node];
            if (threads.size() > 1 && astray++ == 0) {
                first_astray = fmt::format("{} ({})", process->pid, process->comm);
                for (const auto& [node, count] : threads)
                    first_astray += fmt::format(", {} on node {}", count, node);
            }
            CpuSet masks;
            for (const auto& thread : process->threads)
                masks |= thread.allowed;
            const auto node = node_of(masks);
            if (!node) continue;
            std::uint64_t all = 0, near = 0;
            for (const auto& [at, kib] : process->private_kib) {
                // The kernel itself moves cold memory to nodes without CPUs.
                if (const auto* other = topology_.node(at); other != nullptr && !other->cpus.empty())
                    all += kib;
                if (at == *node) near += kib;
            }
            const auto away = all - near;
            if (away >= least_far_kib &&
                static_cast<double>(away) >= least_far_share * static_cast<double>(all))
                far.push_back({process, *node, away, all});
        }
        if (astray > 0)
            add(Ailment::two_nodes, {policy.name, counted(astray, "process", "processes"), first_astray});
        if (policy.memory != policy::Memory::stay || far.empty()) return;
        const auto& worst = *std::ranges::max_element(far, {}, &Far::kib);
        add(Ailment::far_memory,
            {policy.name, counted(far.size(), "process", "processes"), std::to_string(worst.process->pid),
             worst.process->comm, std::to_string(worst.node), std::to_string(worst.kib >> 10U),
             std::to_string(worst.all >> 10U)});
    }

    /// The node that has all of these CPUs; no value: none has, or there are none.
    [[nodiscard]] std::optional<unsigned> node_of(const CpuSet& cpus) const {
        for (const auto& node : topology_.nodes)
            if (!cpus.empty() && node.cpus.contains(cpus)) return node.id;
        return std::nullopt;
    }

    void measuring() {
        std::size_t slow = 0;
        std::string governor;
        for (const auto& [cpu, choice] : seen_.frequencies) {
            // Drivers that choose by themselves call it so, and go by the preference.
            const bool is_own = choice.driver == "intel_pstate" ||
                                choice.driver.starts_with("amd-pstate-epp") ||
                                choice.driver.starts_with("amd_pstate_epp");
            if (choice.governor != "powersave" || (is_own && choice.preference != "power")) continue;
            governor = is_own ? "powersave, preference power" : "powersave";
            ++slow;
        }
        if (slow > 0)
            add(Ailment::powersave,
                {std::to_string(slow), std::to_string(seen_.frequencies.size()), governor});
        const auto deepest = std::ranges::max_element(seen_.idle_states, {}, &IdleState::latency_us);
        if (deepest != seen_.idle_states.end() && deepest->latency_us >= most_idle_latency &&
            deepest->uses > 0)
            add(Ailment::deep_idle, {deepest->name, grouped(deepest->uses),
                                     std::to_string(deepest->latency_us), std::to_string(most_idle_latency)});
        const auto share = seen_.cpu_time == 0
                               ? 0
                               : static_cast<double>(seen_.stolen_time) / static_cast<double>(seen_.cpu_time);
        if (share >= most_stolen) add(Ailment::steal, {fmt::format("{:.1f}", 100 * share)});
    }

    const Examined& seen_;
    const topology::Topology& topology_;
    std::set<unsigned> placed_irqs_; ///< under policy
    std::set<unsigned> nic_irqs_;
    std::map<std::string_view, Lines> families_;
    CpuSet apart_; ///< isolated, or claimed by a policy
    std::vector<Finding> findings_;
};

} // namespace

std::vector<Finding> examine(const Examined& machine) { return Examination(machine).run(); }

std::string yaml_list(const std::vector<std::string>& texts) {
    if (texts.size() == 1) return policy::yaml_text(texts.front());
    std::string list;
    for (const auto& text : texts)
        list += (list.empty() ? "[" : ", ") + policy::yaml_text(text);
    return list + "]";
}

std::map<unsigned, std::uint64_t> private_memory(std::string_view numa_maps) {
    std::map<unsigned, std::uint64_t> kib;
    for (const auto line : affinityd::split(numa_maps, '\n')) {
        std::map<unsigned, std::uint64_t> pages;
        std::uint64_t page_kib = 4;
        bool is_private = false;
        for (const auto word : split_words(line)) {
            const auto equals = word.find('=');
            if (equals == std::string_view::npos) continue;
            const auto key = word.substr(0, equals), value = word.substr(equals + 1);
            const auto number = parse_number<std::uint64_t>(value);
            if (key == "file") {
                is_private = false;
                break;
            }
            if (key == "anon") is_private = true;
            if (key == "kernelpagesize_kB") page_kib = number.value_or(page_kib);
            if (key.starts_with('N') && number)
                if (const auto node = parse_number<unsigned>(key.substr(1))) pages[*node] += *number;
        }
        for (const auto& [node, count] : is_private ? pages : decltype(pages){})
            kib[node] += count * page_kib;
    }
    return kib;
}

} // namespace affinityctl::survey
