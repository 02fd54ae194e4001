// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/machine.hpp"
#include "policy/reader.hpp"
#include "state/last_good.hpp"
#include "status/status.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

/// Chooses what can be in force of the policies that were read. A file with errors does not count: in its
/// place comes its text as it was last in force, if that has none, else nothing. Where policies are at fault
/// side by side, the one that comes later in the order of policies counts as faulty. What is chosen depends
/// on the files and their last good texts only.
class GoodPolicies {
  public:
    /// `last_good` must outlive this.
    GoodPolicies(policy::ReadResult read, const std::vector<policy::Document>& documents,
                 const state::LastGood& last_good);

    /// Takes out one file at fault, or checks what is left. True: nothing is at fault.
    [[nodiscard]] bool step(const machine::Machine& machine);

    struct Result {
        policy::PolicySet set;
        std::vector<status::FileFault> faults;   ///< in order of files
        std::vector<std::string> warnings;       ///< and notes, in order of places
        std::map<std::string, std::string> good; ///< texts of policies whose files are in force
        state::LastGood::Names faulty;           ///< policies whose files are not
    };
    /// After the last step.
    [[nodiscard]] Result take();

  private:
    /// Policies that are not as they were when they were last in force.
    [[nodiscard]] std::set<std::string, std::less<>> newcomers() const;
    void begin_excluding();
    void exclude(const policy::Diagnostic& fault);
    void end_excluding();
    void take_last_good(const policy::Diagnostic& fault, status::FileFault& into);
    [[nodiscard]] policy::Diagnostic last_of(const std::vector<policy::Diagnostic>& errors) const;
    /// Indices, since thousands of files may be at fault at once.
    struct Places {
        std::unordered_map<std::string, std::size_t> policies;  ///< of the set by name, but those taken out
        std::unordered_map<std::string, std::size_t> faults;    ///< by the policy's name
        std::unordered_map<std::string, std::size_t> documents; ///< by path
    };
    Result result_;
    std::vector<policy::Document> documents_; ///< what is in force, or was to be
    std::vector<policy::Diagnostic> errors_;  ///< to be dealt with, the next one last
    std::vector<policy::Diagnostic> remarks_; ///< of reading
    std::vector<policy::Diagnostic> checked_; ///< of the last step
    Places places_;
    bool is_excluding_ = false;
    const state::LastGood& last_good_;
};

/// What a person needs to know about a file: what is wrong, and what is in force in its place.
[[nodiscard]] std::string to_string(const status::FileFault& fault);
/// file:line:column, or the file where the fault is none of a line.
[[nodiscard]] std::string place_of(const policy::Position& at);
/// What is in force in its place, as a sentence without its end.
[[nodiscard]] std::string in_its_place(const status::FileFault& fault);

} // namespace affinityd::app
