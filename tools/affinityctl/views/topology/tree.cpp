// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/table.hpp"
#include "affinityctl/views/topology/facts.hpp"
#include "affinityctl/views/topology/part_names.hpp"
#include "affinityctl/views/topology/text.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::CpuSet;
using Kind = Part::Kind;

struct Held {
    std::string text;
    CpuSet cpus;
    bool whole = false; ///< all CPUs of the part
};

class Tree {
  public:
    Tree(const MachineView& view, bool color)
        : view_(view), color_(color), nested_(nest(view.topology)), hanging_(hang_up(view, nested_.machine)) {
        for (const auto& tenant : view.occupancy.tenants)
            for (const auto& pin : tenant.pins) {
                const CpuSet cpus = pin.cpus & view.topology.online;
                if (cpus.empty()) continue;
                const Part& part = smallest_holding(nested_.machine, cpus);
                held_[&part].push_back(
                    {printable(tenant.policy + ": " + pin.label), cpus, cpus == part.cpus});
            }
    }

    std::string text() {
        out_ = bold(view_.name.empty() ? "machine" : printable(view_.name), color_) + ": " +
               machine_summary(view_.topology) + "\n";
        below(nested_.machine, 1);
        for (const auto& part : nested_.crossing)
            line(1,
                 part_name(view_.topology, part) + " crosses the groups above: CPUs " + part.cpus.to_list());
        out_ += facts_text(view_.topology) + tenants_text(view_.occupancy, color_);
        return std::move(out_);
    }

  private:
    void line(unsigned depth, const std::string& text) {
        out_ += std::string(std::size_t{2} * depth, ' ') + text + "\n";
    }
    [[nodiscard]] std::string tinted(const std::string& text, const char* code) const {
        return color_ ? code + text + "\033[0m" : text;
    }

    [[nodiscard]] bool is_bare(const Part& part) const {
        return !hanging_.contains(&part) && !held_.contains(&part);
    }

    [[nodiscard]] std::string cpu_text(unsigned cpu, const std::string& caches) const {
        std::string text = fmt::format("CPU {}", cpu);
        auto marks = cpu_marks(view_.topology, cpu);
        // The core shows the kind.
        std::erase_if(marks, [&](const std::string& mark) {
            return std::ranges::find(view_.topology.kinds, mark, &affinityd::topology::Kind::name) !=
                   view_.topology.kinds.end();
        });
        std::string special = caches;
        for (const auto& mark : marks)
            special += (special.empty() ? "" : ", ") + mark;
        return special.empty() ? text : text + tinted(" (" + special + ")", "\033[33m");
    }

    [[nodiscard]] std::string core_name(const Part& core) const {
        for (const auto& kind : view_.topology.kinds)
            if (kind.cpus.contains(core.cpus))
                return part_name(view_.topology, core) + " (" + kind.name + ")";
        return part_name(view_.topology, core);
    }

    void print(const Part& top, unsigned depth) {
        // Nested parts with the same CPUs share a line, unless something hangs at an outer one.
        const Part* part = &top;
        std::string names;
        while (true) {
            const bool wide = part->kind <= Kind::node || part->kind == Kind::die;
            const std::string name =
                part->kind == Kind::core ? core_name(*part) : part_name(view_.topology, *part);
            names += (names.empty() ? "" : " + ") + (wide ? bold(name, color_) : name);
            const bool goes_on = part->kind < Kind::core && part->parts.size() == 1 &&
                                 part->parts[0].cpus == part->cpus && is_bare(*part);
            if (!goes_on) break;
            part = &part->parts[0];
        }
        if (part->kind != Kind::core) {
            line(depth, names + ": CPUs " + part->cpus.to_list());
            below(*part, depth + 1);
            return;
        }
        std::string cpus;
        add_cpus(*part, "", cpus);
        line(depth, names + ": " + cpus);
        things(*part, depth + 1);
    }

    /// With the caches that a CPU has to itself inside the core, as in the modules of old Opterons.
    void add_cpus(const Part& part, const std::string& caches, std::string& text) const {
        for (const auto& inner : part.parts) {
            if (inner.kind == Kind::cpu)
                text += (text.empty() ? "" : ", ") + cpu_text(inner.cpus.first(), caches);
            else
                add_cpus(inner, caches + (caches.empty() ? "" : " + ") + part_name(view_.topology, inner),
                         text);
        }
    }

    void below(const Part& part, unsigned depth) {
        things(part, depth);
        for (const auto& inner : part.parts)
            if (inner.kind != Kind::cpu) print(inner, depth);
    }

    void things(const Part& part, unsigned depth) {
        if (const auto found = hanging_.find(&part); found != hanging_.end())
            for (const auto& each : found->second) {
                const std::string name = each.kind == Hanging::Kind::nic ? "NIC " + each.name : each.name;
                line(depth, tinted(name, "\033[36m") + (each.detail.empty() ? "" : " (" + each.detail + ")"));
            }
        if (const auto found = held_.find(&part); found != held_.end())
            for (const auto& each : found->second)
                line(depth,
                     tinted("> " + each.text, "\033[32m") + (each.whole ? "" : " on " + each.cpus.to_list()));
    }

    const MachineView& view_;
    bool color_;
    affinityd::topology::PartTree nested_;
    HangingByPart hanging_;
    std::map<const Part*, std::vector<Held>> held_;
    std::string out_;
};

} // namespace

std::string tree_text(const MachineView& view, bool color) { return Tree(view, color).text(); }

} // namespace affinityctl
