// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace affinityd::coexist {

/// Something else on this machine that sets the masks of interrupts.
struct OtherWriter {
    std::string name;       ///< "irqbalance", "tuned", "systemd.link", "script"
    std::string where;      ///< "pid 812", or "/etc/rc.local:3"
    std::string note;       ///< what it does, what was done about it, or what a person can do
    bool keeps_off = false; ///< it leaves alone what is under policy
    friend bool operator==(const OtherWriter&, const OtherWriter&) = default;
};

} // namespace affinityd::coexist
