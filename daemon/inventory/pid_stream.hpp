// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "inventory/numbered.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace affinityd::inventory {

/// The processes of a machine, one at a time, so that a listing of a hundred thousand can be interrupted
/// and resumed. From the directory, as libproc2 takes a thousand at once, which is most of a millisecond in
/// one system call. A process that is born or ends meanwhile may or may not be among them.
class PidStream {
  public:
    static Result<PidStream> open(const host::Root& root);

    /// No value: that was the last. An Error: the listing broke off, so processes are missing.
    Result<std::optional<int>> next();

  private:
    explicit PidStream(std::optional<NumberedEntries> entries) : entries_(std::move(entries)) {}
    std::optional<NumberedEntries> entries_; ///< no value: a recording without processes, or the end
};

/// Process ids in ascending order, in one go: on this machine through libproc2, in a recording, or where the
/// library cannot serve, from the directory. A recording without processes has none.
[[nodiscard]] Result<std::vector<int>> list_pids(const host::Root& root);

} // namespace affinityd::inventory
