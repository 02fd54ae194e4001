// SPDX-License-Identifier: Apache-2.0
// Policies and latencies that a command line names, for verbs that plan without the daemon.
#pragma once

#include "affinityctl/present/globals.hpp"
#include "base/error.hpp"
#include "machine/machine.hpp"
#include "policy/diagnostic.hpp"
#include "policy/policy.hpp"
#include "policy/reader.hpp"
#include "topology/latencies.hpp"

#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace affinityctl {

/// The policy files that a command line names: files and folders in the order given. In folders, a later file
/// of the same name overrides, as in the daemon's. Two files of the same name that are both listed themselves
/// do not: that would hide one of them, so a finding reports it. An Error if one cannot be read.
[[nodiscard]] affinityd::Result<std::vector<affinityd::policy::Document>>
policy_documents(const std::vector<std::string>& paths, std::vector<affinityd::policy::Diagnostic>& findings);

// These throw a CallError where they fail, as verbs do (verb.hpp).

/// The folders of policies that a running daemon reads, else the standard ones. The last wins.
[[nodiscard]] std::vector<std::string> usual_folders(const Globals& globals);

/// The file of a policy that counts ("": there is none), and the one that overrides all others.
struct PolicyPlaces {
    std::string in_force, own;
};
/// `name` may have the ending of a file.
[[nodiscard]] PolicyPlaces policy_places(const Globals& globals, std::string name);

/// The file that a path names, or the name of a policy (the one in force), or that of an example. A CallError
/// if there is none of that name.
[[nodiscard]] std::string file_named(const Globals& globals, const std::string& word);

/// Nothing, or a link to the null device: it switches the policy off.
[[nodiscard]] bool is_mask(const std::string& path);

/// Makes this the text of a policy's file, so that it outlives the machine. An Error: it cannot be written,
/// or is no more what it was `before`.
[[nodiscard]] std::expected<void, CallError>
save_policy(const std::string& path, const std::optional<std::string>& before, const std::string& text);

/// The policy files of the folders; where none is named, of the usual ones. A CallError if a folder that is
/// named is not there.
[[nodiscard]] std::vector<affinityd::policy::Document>
read_policy_folders(const std::vector<std::string>& folders, const Globals& globals);

/// The policies of the files and folders that a command line names, or of the usual folders if it names none.
/// Findings are on standard error, those that are errors make it a failure.
[[nodiscard]] affinityd::policy::PolicySet read_policy_set(const std::vector<std::string>& paths,
                                                           const Globals& globals);

/// The policies that would be in force if the files and folders `paths` were installed beside what the usual
/// folders have now.
struct Preview {
    affinityd::policy::PolicySet set;
    std::vector<std::string> names; ///< of the policies that `paths` give
};
/// Faults of installed files are warned of, and the file is left out; one in `paths` is a failure.
[[nodiscard]] Preview preview_policy_set(const std::vector<std::string>& paths, const Globals& globals);

/// The table in a file: CSV as others make it, or what `measure latency --json` printed. An Error: the file
/// cannot be read, or is no table; it names the file.
[[nodiscard]] affinityd::Result<affinityd::topology::Latencies> read_latency_table(const std::string& path);

/// `--latency FILE` of verbs that plan on a still machine.
void add_latency_option(CLI::App& verb, std::string& file);

/// The latencies of the machine that is planned on: those of the file, which is taken to be of that machine;
/// without one, of this machine what was measured last.
[[nodiscard]] affinityd::machine::KnownLatencies latencies_for(const Globals& globals,
                                                               const std::string& file);

} // namespace affinityctl
