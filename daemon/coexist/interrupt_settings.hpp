// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "coexist/other_writer.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::coexist {

/// Looks for settings and scripts that set masks of interrupts when an interface comes, at boot or by the
/// clock: systemd.link(5) files with such a setting, and vendors' scripts (set_irq_affinity), in the places
/// where they are usually put. Only files that belong to root count: nobody else's can set a mask.
class InterruptSettings {
  public:
    /// `root` must outlive it. At most `most` are found.
    explicit InterruptSettings(const host::Root& root, std::size_t most = 32);
    InterruptSettings(InterruptSettings&&) noexcept;
    InterruptSettings& operator=(InterruptSettings&&) noexcept;
    ~InterruptSettings();

    /// Begins anew. A search under way is abandoned.
    void begin();
    /// Reads one file after another until `out_of_time` says so. True: no search is under way.
    [[nodiscard]] bool step(const std::function<bool()>& out_of_time);
    /// What the last finished search found.
    [[nodiscard]] const std::vector<OtherWriter>& found() const { return found_; }

  private:
    struct Search;
    const host::Root* root_;
    std::size_t most_;
    std::unique_ptr<Search> search_;
    std::vector<OtherWriter> found_;
};

} // namespace affinityd::coexist
