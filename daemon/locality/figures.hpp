// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "locality/nearness.hpp"
#include "locality/read_counts.hpp"
#include "locality/shares.hpp"

#include <functional>

namespace affinityd::locality {

/// Works out how local the reads of the processes are that `is_meant`. What chance would give a process: its
/// packets arrive as those of all processes of its name do, whoever is meant, and it reads them where it
/// reads. For a worker that is pinned to one of N CPUs, over which the flows are spread, that is 1/N. That of
/// all together is the mean by their reads. Pure.
[[nodiscard]] LocalityFigures figures_of(const ReadCounts& seen, const Nearness& near,
                                         const std::function<bool(int pid)>& is_meant);

} // namespace affinityd::locality
