// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace affinityd::accounting {

/// Something that happened and that a person is to be told once.
struct Notice {
    enum class Kind : std::uint8_t {
        measured,           ///< a run has ended
        regression,         ///< throughput fell
        not_kept,           ///< a result could not be written to the history
        history_unusable,   ///< results are known only until the daemon ends
        history_set_aside,  ///< the history was damaged; a new one begins
        history_unreadable, ///< the history is there, but a query failed
    };
    Kind kind = Kind::measured;
    std::string text; ///< one line
};

} // namespace affinityd::accounting
