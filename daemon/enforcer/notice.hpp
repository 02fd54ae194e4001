// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/enforcer.hpp"
#include "machine/subject.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace affinityd::enforcer {

/// Something that happened while an action was carried out and that an operator may want to know. This room
/// does not log: whoever logs counts by kind.
struct Notice {
    enum class Kind : std::uint8_t {
        refused, ///< the subject could not be set to `to`; told once for each subject and outcome, what may
                 ///< be of the moment with the next pass only
        not_put_back,   ///< the original `to` could not be restored; the record stays for a later daemon
        foreign,        ///< somebody else has changed the subject since, so it keeps `from` and its record is
                        ///< dropped
        corrected,      ///< somebody else had changed it (to `from`): put right, to `granted`
        fight,          ///< somebody else keeps changing it (now `from`): left alone for a while
        diverted,       ///< the CPUs `to` have no interrupt vector left: it is on `granted` instead
        journal_failed, ///< the undo journal could not be written, so nothing was changed; see `fault`
        journal_behind, ///< the change was made, and the journal could not be told; see `fault`
    };
    Kind kind = Kind::refused;
    machine::Subject subject;
    std::string policy; ///< that asks for the change
    machine::Setting from, to, granted;
    Outcome outcome = Outcome::failed;
    int code = 0; ///< errno of the refusal, 0 if there was none
    std::optional<Error> fault{};
};

} // namespace affinityd::enforcer
