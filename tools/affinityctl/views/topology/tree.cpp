// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/table.hpp"
#include "affinityctl/views/topology/alike_cores.hpp"
#include "affinityctl/views/topology/cpu_list.hpp"
#include "affinityctl/views/topology/facts.hpp"
#include "affinityctl/views/topology/part_names.hpp"
#include "affinityctl/views/topology/part_search.hpp"
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
        : view_(view), color_(color), names_(view.topology), nested_(nest(view.topology)),
          hanging_(hang_up(view, nested_.machine)) {
        const PartSearch search(nested_.machine);
        for (const auto& tenant : view.occupancy.tenants)
            for (const auto& pin : tenant.pins) {
                const CpuSet cpus = pin.cpus & view.topology.online;
                if (cpus.empty()) continue;
                const Part& part = search.smallest_holding(cpus);
                held_[&part].push_back(
                    {printable(tenant.policy + ": " + pin.label), cpus, cpus == part.cpus});
            }
    }

    std::string text() {
        out_ = bold(view_.name.empty() ? "machine" : printable(view_.name), color_) + ": " +
               machine_summary(view_.topology) + "\n";
        below(nested_.machine, 1);
        crossing();
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

    [[nodiscard]] std::string marked(const std::string& marks) const {
        return marks.empty() ? "" : tinted(" (" + marks + ")", "\033[33m");
    }

    [[nodiscard]] std::string cpu_text(unsigned cpu, const std::string& caches) const {
        std::string special = caches;
        for (const auto& mark : boot_marks(view_.topology, cpu))
            special += (special.empty() ? "" : ", ") + mark;
        return fmt::format("CPU {}", cpu) + marked(special);
    }

    [[nodiscard]] std::string core_name(const Part& core) const {
        const auto kind = names_.kind_of(core);
        return names_.of(core) + (kind.empty() ? "" : " (" + kind + ")");
    }

    void crossing() {
        constexpr std::size_t most = 16;
        const auto& parts = nested_.crossing;
        for (std::size_t i = 0; i < std::min(parts.size(), most); ++i)
            line(1, names_.of(parts[i]) + " crosses the groups above: CPUs " + short_list(parts[i].cpus));
        if (parts.size() > most) line(1, fmt::format("and {} more cross them", parts.size() - most));
    }

    void print(const Part& top, unsigned depth) {
        // Nested parts with the same CPUs share a line, unless something hangs at an outer one.
        const Part* part = &top;
        std::string names;
        while (true) {
            const bool wide = part->kind <= Kind::node || part->kind == Kind::die;
            const std::string name = part->kind == Kind::core ? core_name(*part) : names_.of(*part);
            names += (names.empty() ? "" : " + ") + (wide ? bold(name, color_) : name);
            const bool goes_on = part->kind < Kind::core && part->parts.size() == 1 &&
                                 part->parts[0].cpus == part->cpus && is_bare(*part);
            if (!goes_on) break;
            part = &part->parts[0];
        }
        if (part->kind != Kind::core) {
            line(depth, names + ": CPUs " + short_list(part->cpus));
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
                add_cpus(inner, caches + (caches.empty() ? "" : " + ") + names_.of(inner), text);
        }
    }

    void below(const Part& part, unsigned depth) {
        things(part, depth);
        constexpr std::size_t least_alike = 8;
        for (std::size_t i = 0; i < part.parts.size(); ++i) {
            const auto alike = alike_cores(part.parts, i, names_, view_.topology,
                                           [this](const Part& each) { return is_bare(each); });
            if (alike.size() >= least_alike) {
                line(depth, alike_text(alike) + marked(alike[0].marks));
                i += alike.size() - 1;
            } else if (part.parts[i].kind != Kind::cpu) {
                print(part.parts[i], depth);
            }
        }
    }

    void things(const Part& part, unsigned depth) {
        if (const auto found = hanging_.find(&part); found != hanging_.end())
            for (const auto& each : found->second) {
                const std::string name = each.kind == Hanging::Kind::nic ? "NIC " + each.name : each.name;
                line(depth, tinted(name, "\033[36m") + (each.detail.empty() ? "" : " (" + each.detail + ")"));
            }
        if (const auto found = held_.find(&part); found != held_.end())
            for (const auto& each : found->second)
                line(depth, tinted("> " + each.text, "\033[32m") +
                                (each.whole ? "" : " on " + short_list(each.cpus)));
    }

    const MachineView& view_;
    bool color_;
    PartNames names_;
    affinityd::topology::PartTree nested_;
    HangingByPart hanging_;
    std::map<const Part*, std::vector<Held>> held_;
    std::string out_;
};

} // namespace

std::string tree_text(const MachineView& view, bool color) { return Tree(view, color).text(); }

} // namespace affinityctl
