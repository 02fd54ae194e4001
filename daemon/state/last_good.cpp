// SPDX-License-Identifier: Apache-2.0
#include "state/last_good.hpp"

#include "base/hash.hpp"
#include "host/file.hpp"
#include "host/ownership.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

namespace affinityd::state {

namespace {

constexpr std::string_view ending = ".yaml";
constexpr std::size_t largest = (1U << 20) + 256; // as much as is accepted of a policy, and the last line

std::string last_line(std::string_view text) {
    return fmt::format("\n# affinityd: a policy as it was last in force, checksum {:016x}\n", fnv1a_64(text));
}

/// The text without its last line; no value if that is not its own.
std::optional<std::string> whole(std::string file) {
    const auto length = last_line({}).size();
    if (file.size() < length) return std::nullopt;
    const auto text = std::string_view(file).substr(0, file.size() - length);
    if (!std::string_view(file).ends_with(last_line(text))) return std::nullopt;
    file.resize(text.size());
    return file;
}

/// A link in the folder is none of ours, whoever made it.
Result<std::optional<std::string>> read_own_file(const std::string& folder, const std::string& path) {
    if (auto checked = host::check_ownership(folder); !checked) return std::unexpected(checked.error());
    auto file = host::read_file(path, largest, host::Links::refused);
    if (!file || !*file) return file;
    if (auto checked = host::check_ownership(path); !checked) return std::unexpected(checked.error());
    return file;
}

} // namespace

std::string LastGood::path_of(std::string_view name) const {
    return fmt::format("{}/{}{}", folder_.empty() ? "(the daemon's memory)" : folder_, name, ending);
}

Result<std::optional<LastGood::Text>> LastGood::find(std::string_view name) const {
    if (const auto found = texts_.find(name); found != texts_.end()) return found->second;
    if (folder_.empty()) return std::nullopt;
    auto path = path_of(name);
    auto file = read_own_file(folder_, path);
    if (!file) return std::unexpected(std::move(file.error()));
    if (!*file) return std::nullopt;
    auto text = whole(std::move(**file));
    if (!text) return std::nullopt;
    return Text{std::move(path), std::move(*text)};
}

Result<void> LastGood::keep(const std::map<std::string, std::string>& good, const Names& faulty) {
    const auto before = std::exchange(texts_, {});
    for (const auto& [name, text] : good)
        texts_.emplace(name, Text{path_of(name), text});
    for (const auto& [name, text] : before)
        if (faulty.contains(name)) texts_.emplace(name, text);
    std::erase_if(written_, [&](const std::string& name) {
        const auto now = texts_.find(name);
        return now == texts_.end() || now->second.text != before.at(name).text;
    });
    faulty_ = faulty;
    return write();
}

bool LastGood::is_on_disk(const std::string& name) const {
    if (!written_.contains(name)) return false;
    const auto path = path_of(name);
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && host::check_ownership(path);
}

/// A shorter text may find room where a longer one did not.
Result<void> LastGood::write() {
    if (folder_.empty()) return {};
    Result<void> result;
    if (!texts_.empty()) result = host::make_directories(folder_);
    if (result) result = host::check_ownership(folder_);
    if (!result) return result;
    for (const auto& [name, text] : texts_) {
        if (is_on_disk(name)) continue;
        written_.erase(name);
        const auto path = path_of(name);
        const auto file = read_own_file(folder_, path);
        const auto wanted = text.text + last_line(text.text);
        Result<void> done;
        if (!file || *file != wanted) done = host::replace_file(path, wanted);
        if (done) written_.insert(name);
        if (result) result = std::move(done);
    }
    remove_others();
    return result;
}

void LastGood::remove_others() const {
    std::error_code code;
    for (std::filesystem::directory_iterator at(folder_, code), end; !code && at != end; at.increment(code)) {
        const auto file = at->path().filename().string();
        if (!file.ends_with(ending)) continue;
        const auto name = std::string_view(file).substr(0, file.size() - ending.size());
        std::error_code ignored;
        if (!texts_.contains(name) && !faulty_.contains(name)) std::filesystem::remove(at->path(), ignored);
    }
}

} // namespace affinityd::state
