// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace affinityd::coexist {

/// Something that happened and that a person is to be told once.
struct Notice {
    enum class Kind : std::uint8_t {
        other_writer,      ///< something else sets masks of interrupts: OtherWriter
        list_not_returned, ///< irqbalance did not get its own list back, or the record of it could not be
                           ///< written
    };
    Kind kind = Kind::other_writer;
    std::string text; ///< one line
};

} // namespace affinityd::coexist
