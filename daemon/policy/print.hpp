// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/policy.hpp"

#include <string>

namespace affinityd::policy {

/// The policy as a file of the language, complete: every key with the value that holds, whether it was
/// written or not, in the order of the key table. Reading it gives an equal policy (positions aside). What
/// `policies show` prints.
[[nodiscard]] std::string to_yaml(const Policy& policy);

/// The selector as the value of `match`: {comm: ["redis-server"], not: [{user: ["root"]}]}.
[[nodiscard]] std::string to_yaml(const Selector& selector);

/// The language as a JSON Schema (draft 7, which editors know), made from the key table. It says what keys
/// there are, what types and words they take and where they stand; CPU-set expressions and regular
/// expressions are texts to it.
[[nodiscard]] std::string json_schema();

} // namespace affinityd::policy
