// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"
#include "inventory/name_service.hpp"

#include <string>
#include <string_view>
#include <unordered_map>

namespace affinityd::inventory {

/// Names of users and groups: by the root's own etc/passwd and etc/group, which is right for recordings, too;
/// what they lack is asked of `ask`. Reading them never waits for a name service.
class UserNames {
  public:
    /// An empty `ask`: the files are all there is. `root` must outlive the names.
    UserNames(const host::Root& root, AskName ask) : root_(&root), ask_(std::move(ask)) {}

    /// The name; the number as text if it has none, or none yet.
    [[nodiscard]] std::string find(NameKind kind, unsigned id);
    /// Reads the files again when they are wanted next, if they have changed.
    void refresh();

  private:
    using Names = std::unordered_map<unsigned, std::string>;
    struct File {
        Names names;
        std::string stamp; ///< which state of the file was read; "" if none
        bool is_checked = false;
    };
    const Names& names_of(NameKind kind);

    const host::Root* root_;
    AskName ask_;
    File users_, groups_;
};

/// The lines "name:password:id:..." of passwd(5) and group(5). Of several names of one id the first counts,
/// as for getpwuid(3); lines that are none, and those of the compatibility mode ("+name"), are passed over.
[[nodiscard]] std::unordered_map<unsigned, std::string> parse_names(std::string_view text);

} // namespace affinityd::inventory
