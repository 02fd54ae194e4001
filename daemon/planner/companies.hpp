// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/company.hpp"
#include "planner/company_sums.hpp"
#include "planner/cpu_load.hpp"
#include "planner/occupied.hpp"
#include "planner/slots.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace affinityd::planner {

/// Where tasks that belong together sit, and where the next of them is to be: on a slot that nobody else
/// uses, as close to the others as can be. The first one gets one of the two free slots that are closest to
/// each other. A slot whose core has less than a quarter of a CPU of others' work is free.
class Companies {
  public:
    static constexpr unsigned none = ~0U;
    /// A task of a company: its number, and that of its distribution.
    struct Member {
        unsigned table;
        TaskId task;
        friend auto operator<=>(const Member&, const Member&) = default;
    };
    /// Where a member sits.
    struct Sitting {
        unsigned slot;  ///< its first CPU
        unsigned place; ///< in the company
    };
    /// The number of a company, for as long as it has a member.
    unsigned join(const CompanyId& id, const Member& member);
    void leave(unsigned company, const Member& member);
    /// No value: nobody is in it.
    [[nodiscard]] std::optional<unsigned> find(const CompanyId& id) const;
    [[nodiscard]] const CompanyId& id(unsigned company) const { return *companies_[company].id; }

    /// A member sits on these CPUs; the number of the place, in the company.
    unsigned enter(unsigned company, const CpuSet& cpus, Weight weight);
    void exit(unsigned company, unsigned place, Weight weight);
    [[nodiscard]] const CpuSet& cpus(unsigned company, unsigned place) const {
        return companies_[company].places[place].cpus;
    }
    void weigh(unsigned company, unsigned place, Weight change);

    /// Index of the slot that is the best for one more. `company`: none for the first. `load`: of all, the
    /// company included. `present`: the mask that it has from us; null: from somebody else.
    [[nodiscard]] std::size_t best(unsigned company, std::span<const Slot> slots, const CpuLoad& load,
                                   const std::shared_ptr<const Closeness>& closeness, const CpuSet* present);

    /// Since its members were seated, latencies were measured, or measured again. It is asked once.
    [[nodiscard]] bool is_outdated(unsigned company, const Closeness& closeness);
    /// Better slots for all members of a distribution, in the order of members(): only if fewer had to
    /// share a CPU, or as many, and all were closer by an eighth, noise left aside. Empty: all stay.
    [[nodiscard]] std::vector<std::size_t> better(unsigned company, std::span<const Slot> slots,
                                                  const std::vector<Sitting>& members, const CpuLoad& load,
                                                  const std::shared_ptr<const Closeness>& closeness) const;
    [[nodiscard]] std::vector<TaskId> members(unsigned company, unsigned table) const;
    /// How close somebody on these CPUs is to all others of the company.
    [[nodiscard]] Nearness nearness(const CompanyId& id, const CpuSet& cpus,
                                    const Closeness& closeness) const;

  private:
    struct Company {
        const CompanyId* id = nullptr; ///< null: free
        std::set<Member> members;
        Occupied places;
        std::shared_ptr<const machine::LatencyMatrix> seated_by;
        bool is_seated = false;          ///< `seated_by` says by what
        std::optional<CompanySums> sums; ///< of the slots that were asked for last, if it has many members
    };
    std::map<CompanyId, unsigned> numbers_;
    std::vector<Company> companies_;
};

} // namespace affinityd::planner
