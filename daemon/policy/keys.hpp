// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::policy {

/// Where a key is allowed.
enum class Level {
    top,    ///< the document
    match,  ///< `match` and every map of conditions below it
    thread, ///< an entry of `threads`
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
};

[[nodiscard]] std::span<const Key> all_keys();
/// nullptr: the level has no such key.
[[nodiscard]] const Key* find_key(Level level, std::string_view name);
[[nodiscard]] std::vector<std::string_view> key_names(Level level);
/// "a number from 1 to 3" and the like, for messages and the manual.
[[nodiscard]] std::string type_name(const Key& key);
/// A hint for a key that does not exist at the level: a similar word, the level where the key belongs, or its
/// name in this language; "" if there is none.
[[nodiscard]] std::string advise_key(Level level, std::string_view name);

} // namespace affinityd::policy
