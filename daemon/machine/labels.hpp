// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"
#include "irq/labels.hpp"
#include "policy/diagnostic.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::machine {

/// Forms of labels of interrupts, and what is wrong with the files they were read from.
struct Labels {
    std::shared_ptr<const irq::LabelTable> table;
    std::vector<policy::Diagnostic> findings; ///< a file with errors counts for nothing
};

/// The forms that are built in: daemon/irq/labels.yaml.
[[nodiscard]] std::shared_ptr<const irq::LabelTable> builtin_labels();
/// The forms of /etc/affinityd/labels.d/*.yaml, in the order of the files' names, before the built-in ones. A
/// recording has its own /etc.
[[nodiscard]] Labels read_labels(const host::Root& root);
/// Faults of a file of forms. `path` is for messages.
[[nodiscard]] std::vector<policy::Diagnostic> check_labels(const std::string& path, std::string_view text);
/// True if a text is meant as such a file: it has a line that begins with "labels:".
[[nodiscard]] bool has_labels(std::string_view text);

} // namespace affinityd::machine
