// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace affinityd::policy {

/// The language as a JSON Schema (draft 7, which editors know), made from the key table. It says what keys
/// there are, what types and words they take and where they stand; CPU-set expressions and regular
/// expressions are texts to it.
[[nodiscard]] std::string json_schema();

} // namespace affinityd::policy
