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

/// The files of the undo journal, its records and the masks that were granted, and how they are kept small:
/// when most of the file is history, both are rewritten beside themselves, a few records with each line that
/// is appended, and renamed.
class JournalWriter {
  public:
    /// Opens or creates the files and reads what an earlier daemon left in them. What is of another boot is
    /// dropped, what cannot be read put aside. True: lines were lost.
    [[nodiscard]] Result<bool> open(const std::string& path, JournalContents& contents);

    [[nodiscard]] Result<void> append(const std::string& line, const JournalContents& contents,
                                      bool is_damaged);
    /// Writes files anew that somebody has removed or cut, in their folder, which is made again if it is
    /// gone. False: out of time, there is more to do.
    [[nodiscard]] bool look_after_files(const JournalContents& contents, bool is_damaged,
                                        const std::function<bool()>& out_of_time);

    /// What was found amiss when the files were opened, or with their folder later, for a person; and last,
    /// why they are not in place: nothing is appended until they are.
    [[nodiscard]] std::vector<Error> faults() const;
    [[nodiscard]] GrantedMasks& granted() { return granted_; }
    [[nodiscard]] const GrantedMasks& granted() const { return granted_; }

  private:
    [[nodiscard]] bool open_granted(const std::string& path);
    void note_missing(const std::string& path, std::string_view present);
    [[nodiscard]] Result<void> renew_folder();
    void begin_rewrite();
    void rewrite_some(const JournalContents& contents, bool is_damaged);

    JournalFile file_{""};
    GrantedMasks granted_;
    std::vector<Error> faults_;
    std::optional<Error> trouble_;
    bool are_records_copied_ = false;   ///< into the rewritten file
    JournalContents::Cursor rewritten_; ///< up to where the rewritten file has the records
};

} // namespace affinityd::state
