// SPDX-License-Identifier: Apache-2.0
// The manager's part in measurements: what came of a run, kept for status.
#include "app/json.hpp"
#include "app/manager.hpp"

namespace affinityd::app {

void Manager::measured(const std::string& output) { measurement_ = output; }
void Manager::measurement_failed(const std::string& fault) { measurement_ = dump({{"fault", fault}}); }

} // namespace affinityd::app
