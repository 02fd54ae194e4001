// SPDX-License-Identifier: Apache-2.0
#include "machine/subject.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

namespace affinityd::machine {

namespace {

struct Printer {
    std::string operator()(const TaskMask& mask) const {
        return fmt::format("task {} ({})", mask.task.tid, mask.comm);
    }
    std::string operator()(const IrqMask& mask) const {
        return fmt::format("IRQ {} ({})", mask.irq, mask.label);
    }
    std::string operator()(const SteeringMask& map) const {
        return fmt::format("{} {}-{}", map.nic, map.direction == Direction::rx ? "rx" : "tx", map.queue);
    }
    std::string operator()(const FlowTable& table) const {
        return table.is_machine() ? "machine flow-entries"
                                  : fmt::format("{} rx-{}-flows", table.nic, table.queue);
    }
    std::string operator()(const UnitCpuset& cpuset) const { return "AllowedCPUs of " + cpuset.unit; }
    std::string operator()(const ListenerCpu& listener) const {
        return fmt::format("listener {} of process {}", listener.port, listener.process);
    }
    std::string operator()(const QueueCount& count) const { return count.nic + " queues"; }
};

std::size_t mix(std::size_t seed, std::size_t value) {
    return seed ^ (value + 0x9e3779b97f4a7c15ULL + (seed << 6U) + (seed >> 2U));
}

/// Over the fields that make the identity.
struct Hasher {
    std::size_t operator()(const TaskMask& mask) const { return std::hash<TaskId>{}(mask.task); }
    std::size_t operator()(const IrqMask& mask) const {
        if (mask.is_line) return mix(mask.irq, 1);
        return mix(mix(text(mask.device), text(mask.label)), mask.ordinal);
    }
    std::size_t operator()(const SteeringMask& map) const {
        return mix(mix(text(map.device), static_cast<std::size_t>(map.direction)),
                   mix(map.queue, map.port()));
    }
    std::size_t operator()(const FlowTable& table) const {
        return mix(text(table.device), mix(table.queue, table.port()));
    }
    std::size_t operator()(const UnitCpuset& cpuset) const { return text(cpuset.unit); }
    std::size_t operator()(const ListenerCpu& listener) const {
        return std::hash<std::uint64_t>{}(listener.cookie);
    }
    std::size_t operator()(const QueueCount& count) const { return mix(text(count.device), count.port()); }
    static std::size_t text(const std::string& value) { return std::hash<std::string>{}(value); }
};

} // namespace

const CpuSet& Setting::cpus() const {
    static const CpuSet none;
    const auto* cpus = std::get_if<CpuSet>(&value_);
    return cpus == nullptr ? none : *cpus;
}

FlowCount Setting::count() const {
    const auto* count = std::get_if<FlowCount>(&value_);
    return count == nullptr ? FlowCount{} : *count;
}

Channels Setting::channels() const {
    const auto* channels = std::get_if<Channels>(&value_);
    return channels == nullptr ? Channels{} : *channels;
}

std::string Setting::to_string() const {
    if (is_cpus()) return cpus().to_list();
    if (std::holds_alternative<Channels>(value_)) return machine::to_string(channels());
    return std::to_string(count().entries);
}

std::string to_string(const Channels& channels) {
    std::string text;
    const auto add = [&](const char* kind, std::uint32_t number) {
        if (number > 0) text += fmt::format("{}{} {}", text.empty() ? "" : " ", kind, number);
    };
    add("combined", channels.combined);
    add("rx", channels.rx);
    add("tx", channels.tx);
    return text.empty() ? "combined 0" : text;
}

Channels in_use(const netdev::Channels& channels) {
    return {channels.combined.value_or(0), channels.rx.value_or(0), channels.tx.value_or(0)};
}

std::optional<Channels> parse_channels(std::string_view text) {
    Channels channels;
    const auto words = split_words(text);
    if (words.empty() || words.size() % 2 != 0) return std::nullopt;
    for (std::size_t i = 0; i < words.size(); i += 2) {
        const auto number = parse_number<std::uint32_t>(words[i + 1]);
        auto* kind = words[i] == "combined" ? &channels.combined
                     : words[i] == "rx"     ? &channels.rx
                     : words[i] == "tx"     ? &channels.tx
                                            : nullptr;
        if (!number || kind == nullptr) return std::nullopt;
        *kind = *number;
    }
    return channels;
}

std::string to_string(const Subject& subject) { return std::visit(Printer{}, subject); }

bool is_queue(const Subject& subject) {
    return std::holds_alternative<IrqMask>(subject) || std::holds_alternative<SteeringMask>(subject) ||
           std::holds_alternative<FlowTable>(subject) || std::holds_alternative<QueueCount>(subject);
}

} // namespace affinityd::machine

std::size_t std::hash<affinityd::machine::Subject>::operator()(
    const affinityd::machine::Subject& subject) const noexcept {
    using namespace affinityd::machine;
    return mix(std::visit(Hasher{}, subject), subject.index());
}
