// SPDX-License-Identifier: Apache-2.0
// The files of `affinityctl test`: machines, processes and policies, and the CPUs that these should lead to.
#pragma once

#include "affinityctl/offline/still_machine.hpp"
#include "base/cpu_set.hpp"
#include "policy/diagnostic.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace affinityctl {

/// A list with an object for each case: the keys of the file as affinityctl(1) has them, those of the whole
/// file, too, with "line" and "column" of each map. `root` takes the place of theirs unless it is "". If it
/// adds errors to `found`, the cases do not count.
[[nodiscard]] nlohmann::json read_cases(const std::string& path, std::string_view text,
                                        const std::string& root,
                                        std::vector<affinityd::policy::Diagnostic>& found);

/// The files of processes that a case makes up, as the kernel of a machine with these CPUs would have them,
/// in a folder that goes with this. Throws std::system_error.
class MadeUpProcesses {
  public:
    MadeUpProcesses(const nlohmann::json& kinds, const affinityd::CpuSet& online);
    MadeUpProcesses(const MadeUpProcesses&) = delete;
    MadeUpProcesses& operator=(const MadeUpProcesses&) = delete;
    ~MadeUpProcesses();
    [[nodiscard]] const OtherProcesses& get() const { return made_; }

  private:
    MadeUpProcesses();
    void add(const nlohmann::json& kind, const std::string& online);
    void put(const std::string& path, const std::string& text) const;
    void link(const std::string& path, const std::string& target) const;

    OtherProcesses made_;
    std::string users_{"root:x:0:0::/:\n"}, groups_{users_}, sockets_; ///< passwd(5), group(5), proc/net/tcp
    int next_ = 1000;
};

/// Differences between a case and a machine that was read for it, each with line, column, subject, expected,
/// found, and count of those alike. `problems`: those of its plan.
[[nodiscard]] nlohmann::json differences(const nlohmann::json& expected, StillMachine& still,
                                         const affinityd::host::Root& root, const nlohmann::json& problems);

} // namespace affinityctl
