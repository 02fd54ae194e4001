// SPDX-License-Identifier: Apache-2.0
#include "app/notices.hpp"

#include "app/message_ids.hpp"

namespace affinityd::app {

void tell(Log& log, const accounting::Notice& notice) {
    using Kind = accounting::Notice::Kind;
    switch (notice.kind) {
    case Kind::measured:
        return log.info(notice.text);
    case Kind::regression:
        return log.event(regression_message, notice.text);
    case Kind::history_set_aside:
        return log.event(history_damaged_message, notice.text);
    case Kind::not_kept:
        return log.error(notice.text);
    case Kind::history_unusable:
    case Kind::history_unreadable:
        return log.warn(notice.text);
    }
}

void tell(Log& log, const coexist::Notice& notice) {
    switch (notice.kind) {
    case coexist::Notice::Kind::other_writer:
    case coexist::Notice::Kind::list_not_returned:
        return log.warn(notice.text);
    }
}

} // namespace affinityd::app
