// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace affinityctl {

/// What people should know of how an experiment was made.
struct MeasuredOn {
    std::string model;                ///< of the CPUs; foreign text
    std::string cpus;                 ///< "0-15": which might be used
    double seconds = 0;               ///< how long it took
    std::vector<std::string> remarks; ///< sentences
};

} // namespace affinityctl
