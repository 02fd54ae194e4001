// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace affinityd::state {

/// The text of each policy as it was last in force, for the case that its file has errors later: in memory,
/// and in a folder of a file each, for the next daemon. A file ends with a checksum, so that one that the
/// machine's end cut short is not taken for a policy that says less. As of policies themselves, what others
/// than root can change is refused.
class LastGood {
  public:
    struct Text {
        std::string path; ///< where it can be read
        std::string text;
    };
    using Names = std::set<std::string, std::less<>>;

    /// `folder` "": in memory only. It is made when there is something to keep.
    explicit LastGood(std::string folder = {}) : folder_(std::move(folder)) {}

    /// No value: there is none, or it is damaged. An Error: others may have written it, or it cannot be read.
    [[nodiscard]] Result<std::optional<Text>> find(std::string_view name) const;
    /// `good` are in force, texts by name; of `faulty` stays what is kept; all others are gone. Memory has
    /// them at once, the folder by step().
    void keep(const std::map<std::string, std::string>& good, const Names& faulty);
    /// Writes to the folder what it lacks, at least one file, until `out_of_time` says so. True: that is all,
    /// and result() tells of it. After a failure, the next step begins anew.
    [[nodiscard]] bool step(const std::function<bool()>& out_of_time);
    /// An Error: the folder did not take all.
    [[nodiscard]] const Result<void>& result() const { return result_; }

  private:
    using Texts = std::map<std::string, Text, std::less<>>;
    [[nodiscard]] std::string path_of(std::string_view name) const;
    [[nodiscard]] Result<void> prepare() const;
    [[nodiscard]] static Result<void> write(const Text& text);
    void remove_others() const;
    std::string folder_;
    Texts texts_;
    Names faulty_;
    std::optional<std::string> next_; ///< to be looked at; no value: nothing is to be done
    Result<void> result_;
};

} // namespace affinityd::state
