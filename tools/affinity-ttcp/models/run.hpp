// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/models/report.hpp"
#include "affinity-ttcp/models/round.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::ttcp {

/// The name that the hypervisor gives itself ("KVMKVMKVM", "TCGTCGTCGTCG"): CPUID leaf 0x40000000. "" without
/// one, or where no instruction reveals it (architectures other than x86).
[[nodiscard]] std::string hypervisor();

/// A warning for people where the CPU is emulated by translating its instructions (QEMU's TCG); else "".
[[nodiscard]] std::string_view emulation_note(std::string_view hypervisor);

struct ModelsSetup {
    std::vector<LoadPoint> points{LoadPoint{}};
    std::vector<Model> models{all_models.begin(),
                              all_models.end()}; ///< the others are compared with the first
    unsigned rounds = 10;                        ///< of each model at each point
    RoundSetup round;                            ///< its point counts for nothing here
    /// With `done` 0 when the first round begins, then after each; may be empty.
    std::function<void(std::size_t done, std::size_t all)> progress;
};

/// All rounds together.
[[nodiscard]] std::size_t rounds_of(const ModelsSetup& setup);
/// How long the experiment takes on a machine that is not overloaded.
[[nodiscard]] double expected_seconds(const ModelsSetup& setup);

/// The whole experiment on a testbed: a short run that does not count, then rounds in interleaved order, each
/// round with all models of one point, then all of the next. After a fault the report still has the samples
/// of the complete rounds.
[[nodiscard]] ModelsReport run_models(const host::Root& root, const Testbed& testbed,
                                      const ModelsSetup& setup);

} // namespace affinityd::ttcp
