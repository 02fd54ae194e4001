// SPDX-License-Identifier: Apache-2.0
#include "inventory/user_names.hpp"

#include "base/text.hpp"

namespace affinityd::inventory {

namespace {

constexpr std::size_t file_limit = 4U << 20; // some 60,000 users; sites with more use a directory service
constexpr std::size_t longest_name = 256;    // LOGIN_NAME_MAX

} // namespace

std::unordered_map<unsigned, std::string> parse_names(std::string_view text) {
    std::unordered_map<unsigned, std::string> names;
    while (!text.empty()) {
        const auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        const auto name_end = line.find(':');
        const auto password_end =
            name_end == std::string_view::npos ? name_end : line.find(':', name_end + 1);
        if (name_end == 0 || name_end > longest_name || password_end == std::string_view::npos) continue;
        if (line.front() == '+' || line.front() == '-' || line.front() == '#') continue;
        const auto rest = line.substr(password_end + 1);
        if (const auto id = parse_number<unsigned>(rest.substr(0, rest.find(':'))))
            names.emplace(*id, line.substr(0, name_end));
    }
    return names;
}

const UserNames::Names& UserNames::names_of(NameKind kind) {
    auto& file = kind == NameKind::user ? users_ : groups_;
    if (file.is_checked) return file.names;
    file.is_checked = true;
    const char* name = kind == NameKind::user ? "passwd" : "group";
    auto stamp = root_->etc().stamp(name).value_or("");
    if (!stamp.empty() && stamp == file.stamp) return file.names;
    const auto text = root_->etc().read(name, file_limit);
    if (!text) return file.names; // cannot be read now: what was known holds
    file.names = *text ? parse_names(**text) : Names{};
    file.stamp = std::move(stamp);
    return file.names;
}

std::string UserNames::find(NameKind kind, unsigned id) {
    const auto& names = names_of(kind);
    if (const auto found = names.find(id); found != names.end()) return found->second;
    if (ask_)
        if (auto name = ask_(kind, id); name && !name->empty()) return std::move(*name);
    return std::to_string(id);
}

void UserNames::refresh() { users_.is_checked = groups_.is_checked = false; }

} // namespace affinityd::inventory
