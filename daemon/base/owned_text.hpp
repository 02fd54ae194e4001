// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace affinityd {

/// A text with parts that only root and one user (a uid) may read; others read something shorter there.
class OwnedText {
  public:
    /// Owner of what only the privileged may read, such as a process whose user is not known.
    static constexpr std::uint32_t no_owner = ~std::uint32_t{0};

    OwnedText() = default;
    explicit OwnedText(std::string for_everybody) { add(std::move(for_everybody)); }

    /// Appends a text for all users.
    void add(std::string text);
    /// Appends `full` for the privileged and for `owner`, `redacted` for others.
    void add(std::uint32_t owner, std::string full, std::string redacted);

    /// The text for the privileged (root, the daemon's own user).
    [[nodiscard]] std::string full() const;
    /// The text for this user without privilege.
    [[nodiscard]] std::string seen_by(std::uint32_t user) const;
    /// Bytes of the full text.
    [[nodiscard]] std::size_t size() const { return size_; }

  private:
    struct Part {
        std::uint32_t owner = no_owner;
        bool is_open = false; ///< `full` is for all users
        std::string full;
        std::string redacted;
    };
    std::vector<Part> parts_;
    std::size_t size_ = 0;
};

} // namespace affinityd
