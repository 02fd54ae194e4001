// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// Where a key is allowed.
enum class Level {
    top,    ///< the document
    match,  ///< `match` and every map of conditions below it
    thread, ///< an entry of `threads`
    other,  ///< of another language: settings, forms of labels
};

/// type_name() says what each takes.
enum class Type {
    version,
    integer,
    boolean,
    text,
    choice,
    cpus,
    near,
    patterns,
    nics,
    policies,
    ports,
    duration,
    index,
    slot,
    slots,
    conditions,
    condition_lists,
    rules,
    seconds,
    described ///< of another language: what Key::unit says
};

/// A key of the language. The table of these is the one place that says which keys exist: the reader, its
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
    int low = 0, high = 0;                    ///< of an integer, or of seconds
};

[[nodiscard]] std::span<const Key> all_keys();
/// The keys of one level, which are side by side in the table.
[[nodiscard]] std::span<const Key> keys_of(Level level);
/// "a number from 1 to 3" and the like, for messages and the manual.
[[nodiscard]] std::string type_name(const Key& key);

/// A key of a map with its value, which is no null.
struct Entry {
    const Key* key;
    const Node* name;
    const Node* value;
};

using Ports = std::vector<std::pair<std::uint16_t, std::uint16_t>>;

/// Reports that the value is not what the key's type says; `hint` may be empty. False, for the reader to
/// return.
bool refuse_type(const Entry& entry, Report& report, std::string hint = {});

// Each sets `target` to the value, as the key's type says. False: it was reported, and a single value is as
// it was; of a list those elements are left out that are wrong.
bool read_value(const Entry& entry, bool& target, Report& report);
bool read_value(const Entry& entry, int& target, Report& report);
bool read_value(const Entry& entry, std::string& target, Report& report);
bool read_value(const Entry& entry, std::optional<CpuExpr>& target, Report& report);
bool read_value(const Entry& entry, std::chrono::milliseconds& target, Report& report); ///< up to a minute
bool read_value(const Entry& entry, std::chrono::seconds& target, Report& report);
bool read_value(const Entry& entry, std::optional<std::pair<unsigned, unsigned>>& target, Report& report);
bool read_value(const Entry& entry, Ports& target, Report& report);
/// `see` is called for each pattern and its place, before it is kept.
bool read_value(const Entry& entry, std::vector<Pattern>& target, Report& report,
                const std::function<void(Pattern&, const Node&)>& see = {});
bool read_choice(const Entry& entry, std::size_t& target, Report& report); ///< place in Key::values

/// A scalar counts as a list of one. All elements are scalars with a value; those that are not are reported
/// and left out.
[[nodiscard]] std::vector<const Node*> read_list(const Entry& entry, Report& report);

/// A map of the language with its keys looked up in a key table. The constructor reports unknown keys,
/// duplicate keys and keys without a value. Refers to the nodes.
class Fields {
  public:
    /// `keys`: of a level, or of another language; they must outlive the fields.
    Fields(const Node& map, std::span<const Key> keys, Report& report);

    [[nodiscard]] const Entry* find(std::string_view name) const; ///< nullptr: absent, or without a value
    [[nodiscard]] bool names(std::string_view name) const;        ///< also without a value
    [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; } ///< in the file's order

    /// Sets `target` if the key is there and right; true then.
    template <class Value>
    bool read(std::string_view name, Value& target) const {
        const auto* entry = find(name);
        if (entry == nullptr) return false;
        if constexpr (std::is_enum_v<Value>) {
            std::size_t place = 0;
            const bool is_right = read_choice(*entry, place, report_);
            if (is_right) target = static_cast<Value>(place);
            return is_right;
        } else {
            return read_value(*entry, target, report_);
        }
    }

  private:
    Report& report_;
    std::vector<Entry> entries_;
    std::vector<Entry> named_; ///< these, and those without a value
};

/// Reads a policy file; reports what is wrong and gives what could be read.
[[nodiscard]] Policy read_document(const Node& root, Report& report);

/// Calls `take(key, value)` for each key at the top that has words, or true and false, and nothing else to
/// it: the reader sets these, the printer prints them.
template <class Of, class Take>
void each_word(Of& policy, const Take& take) {
    take("exclusive", policy.exclusive);
    take("isolate", policy.isolate);
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
