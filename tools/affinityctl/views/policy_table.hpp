// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/reader.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

/// What is said where there are none.
inline constexpr const char* no_policies =
    "There are no policies. Examples for nginx, redis and others are in /usr/share/affinityd/examples: copy "
    "one to /etc/affinityd/policies.d, and see `affinityctl check` and `affinityctl plan FILE`.";

/// A policy file with errors.
struct FaultyFile {
    std::string name; ///< the policy's
    std::string path;
    std::size_t errors = 0;
};

/// In the order of their first errors.
[[nodiscard]] std::vector<FaultyFile> faulty_files(const affinityd::policy::ReadResult& read);

/// The document of `policies --json`: what was read, and what the daemon's `status` (or null) adds to it.
[[nodiscard]] nlohmann::json policies_json(const affinityd::policy::ReadResult& read,
                                           const nlohmann::json& status);

/// That document for a person.
[[nodiscard]] std::string policies_text(const nlohmann::json& document, bool color);

} // namespace affinityctl
