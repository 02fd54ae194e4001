// SPDX-License-Identifier: Apache-2.0
#include "inventory/accept_list.hpp"

namespace affinityd::inventory {

namespace {

constexpr std::chrono::seconds longest_rest{4}; // a new connection is to have its listener's CPU

} // namespace

AcceptList::AcceptList(const host::Root& root)
    : reader_(root), round_(root, reader_, {}),
      thread_([this](const auto& processes, const auto& stop) { return round_.read(processes, stop); },
              longest_rest) {}

} // namespace affinityd::inventory
