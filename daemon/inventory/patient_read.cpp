// SPDX-License-Identifier: Apache-2.0
#include "inventory/patient_read.hpp"

#include "host/avoided.hpp"
#include "host/patient_call.hpp"

#include <memory>
#include <utility>

namespace affinityd::inventory {

std::vector<std::optional<std::string>> read_patiently(const host::Root& root, int pid,
                                                       std::vector<std::string> names, std::size_t longest) {
    using Texts = std::vector<std::optional<std::string>>;
    const Texts none(names.size());
    if (names.empty() || (root.is_live() && host::is_process_avoided(pid))) return none;
    auto folder = root.proc().dir(std::to_string(pid));
    if (!folder) return none;
    const auto read = [folder = std::make_shared<const host::Dir>(std::move(*folder)),
                       names = std::move(names), pid, longest](host::InUse& at) {
        at.pid = pid;
        Texts texts;
        for (const auto& name : names) {
            if (at.is_given_up) break;
            texts.push_back(folder->read(name, longest).value_or(std::nullopt));
        }
        return texts;
    };
    return host::patiently<Texts>(read).value_or(none);
}

} // namespace affinityd::inventory
