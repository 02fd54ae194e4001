// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/daemon/members.hpp"

namespace affinityctl {

using affinityd::CpuSet;
using nlohmann::json;

namespace {

/// nullptr where there is none.
const json* find(const json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
}

} // namespace

std::string text(const json& object, const char* key) {
    const auto* found = find(object, key);
    return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint64_t count(const json& object, const char* key) {
    const auto* found = find(object, key);
    return found != nullptr && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

const json& list(const json& object, const char* key) {
    static const json none = json::array();
    const auto* found = find(object, key);
    return found != nullptr && found->is_array() ? *found : none;
}

CpuSet cpus(const json& object, const char* key) {
    return CpuSet::parse_list(text(object, key)).value_or(CpuSet{});
}

json member(const json& object, const char* key) {
    const auto* found = find(object, key);
    return found == nullptr ? json() : *found;
}

} // namespace affinityctl
