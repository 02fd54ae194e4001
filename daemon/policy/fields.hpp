// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/keys.hpp"
#include "policy/policy.hpp"
#include "policy/report.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::policy {

/// A map of the language with its keys looked up in the key table: unknown and repeated keys and keys without
/// a value have been reported by the time it is there. Refers to the nodes.
class Fields {
  public:
    struct Entry {
        const Key* key;
        const Node* name;
        const Node* value;
    };

    Fields(const Node& map, Level level, Report& report);

    [[nodiscard]] const Entry* find(std::string_view name) const; ///< nullptr: not there, or without a value
    [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; } ///< in the file's order

  private:
    std::vector<Entry> entries_;
};

// Each reads one value as its key's type, or reports why it cannot and gives nothing.
[[nodiscard]] std::optional<bool> read_boolean(const Fields::Entry& entry, Report& report);
[[nodiscard]] std::optional<int> read_integer(const Fields::Entry& entry, int low, int high, Report& report);
[[nodiscard]] std::optional<std::string> read_text(const Fields::Entry& entry, Report& report);
[[nodiscard]] std::optional<std::size_t> read_choice(const Fields::Entry& entry,
                                                     Report& report); ///< place in Key::values
[[nodiscard]] std::optional<CpuExpr> read_cpus(const Fields::Entry& entry, Report& report);
[[nodiscard]] std::optional<std::pair<unsigned, unsigned>> read_index(const Fields::Entry& entry,
                                                                      Report& report);
using Ports = std::vector<std::pair<std::uint16_t, std::uint16_t>>;
[[nodiscard]] Ports read_ports(const Fields::Entry& entry, Report& report); ///< empty: reported

/// A scalar stands for a list of one. The elements are scalars that are there; else it was reported and the
/// list is empty.
[[nodiscard]] std::vector<const Node*> read_list(const Fields::Entry& entry, Report& report);
/// The elements as patterns; those that are wrong are reported and left out.
[[nodiscard]] std::vector<Pattern> read_patterns(const Fields::Entry& entry, Report& report);

/// Sets `target` if the key is there and right; true then.
template <class Enum>
bool set_choice(const Fields& fields, std::string_view name, Enum& target, Report& report) {
    const auto* entry = fields.find(name);
    const auto place = entry != nullptr ? read_choice(*entry, report) : std::nullopt;
    if (place) target = static_cast<Enum>(*place);
    return place.has_value();
}
bool set_boolean(const Fields& fields, std::string_view name, bool& target, Report& report);

/// The keys of Placement that stand in `fields`; others keep their value.
void read_placement(const Fields& fields, Placement& placement, Report& report);

} // namespace affinityd::policy
