// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state/granted_masks.hpp"
#include "state/journal_contents.hpp"
#include "state/journal_file.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::state {

/// The file of the undo journal, and how it is kept small: when most of it is history, it is rewritten beside
/// itself, a few records with each line that is appended, and renamed.
class JournalWriter {
  public:
    /// Opens or creates the file and reads what an earlier daemon left in it. What is of another boot is
    /// dropped, what cannot be read put aside. True: lines were lost.
    [[nodiscard]] Result<bool> open(const std::string& path, JournalContents& contents);

    [[nodiscard]] Result<void> append(const std::string& line, const JournalContents& contents,
                                      bool is_damaged);
    /// Writes a file anew that was removed or cut, in its folder, which is made again if it is gone. False:
    /// out of time, there is more to do.
    [[nodiscard]] bool look_after_files(const JournalContents& contents, bool is_damaged,
                                        const std::function<bool()>& out_of_time);

    /// What was found amiss when the files were opened, or with their folder later, for a person; and last,
    /// why they are not in place: nothing is appended until they are.
    [[nodiscard]] std::vector<Error> faults() const;
    [[nodiscard]] GrantedMasks& granted() { return granted_; }
    [[nodiscard]] const GrantedMasks& granted() const { return granted_; }

  private:
    [[nodiscard]] Result<void> renew_folder();
    void begin_rewrite();
    void rewrite_some(const JournalContents& contents, bool is_damaged);

    JournalFile file_{""};
    GrantedMasks granted_;
    std::vector<Error> faults_;
    std::optional<Error> trouble_;
    JournalContents::Cursor rewritten_; ///< up to where the rewritten file has the records
};

} // namespace affinityd::state
