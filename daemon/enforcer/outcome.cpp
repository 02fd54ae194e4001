// SPDX-License-Identifier: Apache-2.0
#include "enforcer/enforcer.hpp"

namespace affinityd::enforcer {

std::string_view to_string(Outcome outcome) {
    switch (outcome) {
    case Outcome::done: return "done";
    case Outcome::narrowed: return "narrowed";
    case Outcome::pending: return "pending";
    case Outcome::gone: return "gone";
    case Outcome::immovable: return "immovable";
    case Outcome::deadline: return "deadline";
    case Outcome::not_permitted: return "not permitted";
    case Outcome::no_cpu: return "no CPU";
    case Outcome::full: return "vectors full";
    case Outcome::busy: return "busy";
    case Outcome::failed: return "failed";
    }
    return "failed";
}

bool took_effect(Outcome outcome) {
    return outcome == Outcome::done || outcome == Outcome::narrowed || outcome == Outcome::pending;
}

} // namespace affinityd::enforcer
