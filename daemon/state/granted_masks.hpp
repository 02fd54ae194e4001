// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/subject.hpp"
#include "state/journal_file.hpp"
#include "state/slot_table.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace affinityd::state {

/// Numbers of 63 bits, in eleven to twenty-two bytes each. When there are `most`, those that were added
/// first are forgotten, half of them at once. They may come from a file that anything wrote: where a number
/// stands depends on a key of this set's own.
class NumberSet {
  public:
    explicit NumberSet(std::size_t most);
    /// False: it was there.
    bool add(std::uint64_t number);
    void erase(std::uint64_t number);
    [[nodiscard]] bool contains(std::uint64_t number) const {
        return is_in(young_, key_.mixed(number)) || is_in(old_, key_.mixed(number));
    }
    [[nodiscard]] std::size_t size() const { return young_.size() + old_.size(); }
    /// Uses the numbers in cells from `from` on, before `to`. Those that were added first are in the higher
    /// cells, so that a walk from the end meets them first.
    template <class Use>
    void for_cells(std::size_t from, std::size_t to, Use&& use) const {
        const auto with_number = [&](std::uint32_t hash, std::uint32_t slot) {
            use(key_.number(static_cast<std::uint64_t>(slot) << 32U | hash));
        };
        const auto young = young_.cells();
        if (to > young) old_.for_cells(from > young ? from - young : 0, to - young, with_number);
        young_.for_cells(from, to, with_number);
    }
    [[nodiscard]] std::size_t cells() const { return old_.cells() + young_.cells(); }

  private:
    /// Mixes 63 bits into 63 others and back. The highest bit stays 0, so that no high half means "none" to a
    /// SlotTable.
    class Key {
      public:
        Key();
        [[nodiscard]] std::uint64_t mixed(std::uint64_t number) const;
        [[nodiscard]] std::uint64_t number(std::uint64_t mixed) const;

      private:
        std::uint64_t mask_, factor_, inverse_; ///< random; the factor is odd
    };
    [[nodiscard]] static bool is_in(const SlotTable& table, std::uint64_t mixed);
    std::size_t most_;
    Key key_;
    SlotTable young_, old_; ///< the low half of a mixed number is the hash, the high half the slot
};

/// Which masks were ever given to which subject since the machine was started: what the undo journal knows of
/// a subject may get lost (the file is damaged, cut or removed), and a mask of ours must not be taken for an
/// original then. A file beside the journal, with a line of 18 bytes for each pair of subject and mask, which
/// are kept as one number of 64 bits. Those of tasks and those of queues are bounded apart, so that a crowd
/// of tasks does not make interrupts forgotten.
class GrantedMasks {
  public:
    static constexpr std::size_t most_of_tasks = 262144;
    static constexpr std::size_t most_of_queues = 65536;

    /// In memory only, until open() gives it a file.
    GrantedMasks() : file_("") {}
    /// What cannot be read there is put aside: the undo journal is of more use, and `fault` says so.
    static Result<GrantedMasks> open(const std::string& path, std::optional<Error>& fault);

    /// Before the subject is given the mask. If this fails, it must not be given.
    [[nodiscard]] Result<void> note(const machine::Subject& subject, const machine::Setting& setting);
    [[nodiscard]] bool contains(const machine::Subject& subject, const machine::Setting& setting) const;
    /// The subject is gone for good.
    void forget(const machine::Subject& subject, const machine::Setting& setting);
    [[nodiscard]] std::size_t size() const { return tasks_.size() + queues_.size(); }

    /// A rewrite of the file with what is still known, in small steps. note() goes on meanwhile.
    void begin_rewrite();
    /// True: all has been copied, and finish_rewrite() may be called.
    [[nodiscard]] bool rewrite_some();
    void finish_rewrite() { file_.finish_rewrite(); }
    [[nodiscard]] bool is_in_place() const { return file_.is_in_place(); }

  private:
    explicit GrantedMasks(const std::string& path) : file_(path) {}
    void replay(std::string_view text);
    [[nodiscard]] NumberSet& of(const machine::Subject& subject);
    [[nodiscard]] std::string lines(std::size_t from, std::size_t to) const;
    [[nodiscard]] std::string next_lines();
    [[nodiscard]] std::size_t cells() const { return tasks_.cells() + queues_.cells(); }
    NumberSet tasks_{most_of_tasks};
    NumberSet queues_{most_of_queues};
    JournalFile file_;
    std::size_t left_ = 0;  ///< cells that the rewrite has not copied: the lower ones
    std::size_t cells_ = 0; ///< when it began: with another number, all have other places
};

} // namespace affinityd::state
