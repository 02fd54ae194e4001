// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace affinityd::inventory {

/// The processes of a machine, one at a time, so that a listing of a hundred thousand can be interrupted
/// and resumed. On this machine through libproc2, which goes on where it stopped; in a recording, or where
/// the library cannot serve, from the directory. A process that is born or ends meanwhile may or may not be
/// among them.
class PidStream {
  public:
    static Result<PidStream> open(const host::Root& root);
    PidStream(PidStream&&) noexcept;
    PidStream& operator=(PidStream&&) noexcept;
    ~PidStream();

    /// No value: that was the last. An Error: the listing broke off, so processes are missing.
    Result<std::optional<int>> next();

  private:
    struct Source;
    explicit PidStream(std::unique_ptr<Source> source);
    std::unique_ptr<Source> source_;
};

/// Process ids in ascending order, in one go. A recording without processes has none.
[[nodiscard]] Result<std::vector<int>> list_pids(const host::Root& root);

} // namespace affinityd::inventory
