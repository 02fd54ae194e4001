// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/globals.hpp"
#include "base/error.hpp"
#include "machine/machine.hpp"
#include "topology/latencies.hpp"

#include <string>

namespace CLI {
class App;
}

namespace affinityctl {

/// The table in a file: CSV as others make it, or what `measure latency --json` printed. An Error: the file
/// cannot be read, or is no table; it names the file.
[[nodiscard]] affinityd::Result<affinityd::topology::Latencies> read_latency_table(const std::string& path);

/// `--latency FILE` of verbs that plan on a still machine.
void add_latency_option(CLI::App& verb, std::string& file);

/// The latencies of the machine that is planned on: those of the file (CSV, or JSON as `measure latency`
/// prints it), which is taken to be of that machine; without one, of this machine what was measured last. An
/// Error: the file cannot be read.
[[nodiscard]] affinityd::Result<affinityd::machine::KnownLatencies> latencies_for(const Globals& globals,
                                                                                  const std::string& file);

} // namespace affinityctl
