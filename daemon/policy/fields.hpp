// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/policy.hpp"
#include "policy/report.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace affinityd::policy {

/// Where a key is allowed.
enum class Level {
    top,    ///< the document
    match,  ///< `match` and every map of conditions below it
    thread, ///< an entry of `threads`
    other,  ///< of another language: settings, forms of labels
};

enum class Type {
    version,         ///< the number 1
    integer,         ///< -100000 to 100000
    boolean,         ///< true or false
    text,            ///< any text
    choice,          ///< one of Key::values
    cpus,            ///< a CPU-set expression
    near,            ///< the same, or the word "measured"
    patterns,        ///< one or a list of globs and /regexes/
    nics,            ///< "auto", or patterns
    policies,        ///< one or a list of names of policies
    ports,           ///< one or a list of ports 1-65535 and ranges "8000-8099"
    duration,        ///< a time from 0 to one minute: "500ms", "2s"
    index,           ///< a number, or a range "1-4"
    slot,            ///< a slot's name
    slots,           ///< one or a list of names of slots
    conditions,      ///< a map of match keys
    condition_lists, ///< a list of such maps
    rules,           ///< a list of maps of thread keys
    described,       ///< of another language: what Key::unit says
};

/// One key of the language. The table of these is the one place that says which keys exist: the reader, its
/// messages, the JSON Schema and the blocks of affinityd.policy(5) come from it or are tested against it.
struct Key {
    Level level;
    std::string_view name;
    Type type;
    std::span<const std::string_view> values; ///< of a choice, in the order of the C++ enum
    std::string_view standard;                ///< what holds when the key is absent, as text
    std::string_view unit;                    ///< "" where none makes sense
    std::string_view example;                 ///< a value as it is written
    std::string_view meaning;                 ///< one sentence
    unsigned idle = 0;                        ///< bits of the models (1 << Model) under which it says nothing
};

[[nodiscard]] std::span<const Key> all_keys();
/// Those of one level, which are side by side in the table.
[[nodiscard]] std::span<const Key> keys_of(Level level);
/// "a number from 1 to 3" and the like, for messages and the manual.
[[nodiscard]] std::string type_name(const Key& key);

/// A map of the language with its keys looked up in a key table. The constructor reports unknown keys,
/// duplicate keys and keys without a value. Refers to the nodes.
class Fields {
  public:
    struct Entry {
        const Key* key;
        const Node* name;
        const Node* value;
    };

    /// `keys`: of a level, or of another language; they must outlive the fields.
    Fields(const Node& map, std::span<const Key> keys, Report& report);

    [[nodiscard]] const Entry* find(std::string_view name) const; ///< nullptr: absent, or without a value
    [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; } ///< in the file's order

  private:
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
/// `measured` puts each thread on a CPU of its own where the file does not say otherwise.
void place_singly(Placement& placement);

/// One policy file; reports what is wrong and gives what could be read.
[[nodiscard]] Policy read_document(const Node& root, Report& report);

/// Calls `take(key, value)` for each key at the top that has words, or true and false, and nothing else to
/// it: the reader sets these, the printer prints them.
template <class Of, class Take>
void each_word(Of& policy, const Take& take) {
    take("exclusive", policy.exclusive);
    take("separate", policy.separate);
    take("steering", policy.steering);
    take("steer", policy.steer);
    take("drift", policy.drift);
    take("prior", policy.prior);
    take("on_stop", policy.on_stop);
    take("means", policy.means);
    take("memory", policy.memory);
}

} // namespace affinityd::policy
