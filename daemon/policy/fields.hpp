// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/keys.hpp"
#include "policy/policy.hpp"
#include "policy/report.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace affinityd::policy {

/// A map of the language with its keys looked up in a key table. The constructor reports unknown keys,
/// duplicate keys and keys without a value. Refers to the nodes.
class Fields {
  public:
    struct Entry {
        const Key* key;
        const Node* name;
        const Node* value;
    };

    Fields(const Node& map, Level level, Report& report);
    /// The same for another language with keys of its own, which must outlive the fields.
    Fields(const Node& map, std::span<const Key> keys, Report& report);

    [[nodiscard]] const Entry* find(std::string_view name) const; ///< nullptr: absent, or without a value
    [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; } ///< in the file's order

  private:
    using Find = std::function<const Key*(std::string_view name)>;
    using Advise = std::function<std::string(std::string_view name)>;
    void read(const Node& map, const Find& find_key, const Advise& advise, Report& report);
    std::vector<Entry> entries_;
};

// Each reads one value as its key's type, or reports why it cannot and has no value.
/// Reports that the value is not what the key's type says; `hint` may be empty.
void report_wrong_type(const Fields::Entry& entry, Report& report, std::string hint = {});
[[nodiscard]] std::optional<bool> read_boolean(const Fields::Entry& entry, Report& report);
[[nodiscard]] std::optional<int> read_integer(const Fields::Entry& entry, int low, int high, Report& report);
[[nodiscard]] std::optional<std::string> read_text(const Fields::Entry& entry, Report& report);
[[nodiscard]] std::optional<std::size_t> read_choice(const Fields::Entry& entry,
                                                     Report& report); ///< place in Key::values
[[nodiscard]] std::optional<CpuExpr> read_cpus(const Fields::Entry& entry, Report& report);
[[nodiscard]] std::optional<std::chrono::milliseconds> read_duration(const Fields::Entry& entry,
                                                                     Report& report);
[[nodiscard]] std::optional<std::pair<unsigned, unsigned>> read_index(const Fields::Entry& entry,
                                                                      Report& report);
using Ports = std::vector<std::pair<std::uint16_t, std::uint16_t>>;
[[nodiscard]] Ports read_ports(const Fields::Entry& entry, Report& report); ///< empty: reported

/// A scalar counts as a list of one. All elements are scalars with a value; otherwise the fault was reported
/// and the list is empty.
[[nodiscard]] std::vector<const Node*> read_list(const Fields::Entry& entry, Report& report);
/// The elements as patterns; those that are wrong are reported and left out.
[[nodiscard]] std::vector<Pattern> read_patterns(const Fields::Entry& entry, Report& report);

/// Warns of a pattern for names of tasks (`what`: "process", "thread") whose texts are all longer than any.
void check_name(const Pattern& pattern, std::string_view what, const Node& at, Report& report);

/// Sets `target`, a choice or true or false, if the key is there and right; true then.
template <class Value>
bool set_word(const Fields& fields, std::string_view name, Value& target, Report& report) {
    const auto* entry = fields.find(name);
    if (entry == nullptr) return false;
    if constexpr (std::is_same_v<Value, bool>) {
        const auto value = read_boolean(*entry, report);
        if (value) target = *value;
        return value.has_value();
    } else {
        const auto place = read_choice(*entry, report);
        if (place) target = static_cast<Value>(*place);
        return place.has_value();
    }
}

/// Sets what `fields` say of a Placement; the rest keeps its value.
void read_placement(const Fields& fields, Placement& placement, Report& report);
/// What `measured` asks for where the file does not say otherwise: each thread on a CPU of its own.
void place_singly(Placement& placement);

} // namespace affinityd::policy
