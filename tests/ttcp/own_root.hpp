// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"

namespace affinityd::test {

inline const host::Root& root() {
    static const auto opened = host::Root::open().value();
    return opened;
}

} // namespace affinityd::test
