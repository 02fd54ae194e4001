// SPDX-License-Identifier: Apache-2.0
#include "state/last_good.hpp"

#include "base/hash.hpp"
#include "host/file.hpp"
#include "host/ownership.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

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

void LastGood::keep(const std::map<std::string, std::string>& good, const Names& faulty) {
    const auto before = std::exchange(texts_, {});
    for (const auto& [name, text] : good)
        texts_.emplace(name, Text{path_of(name), text});
    for (const auto& [name, text] : before)
        if (faulty.contains(name)) texts_.emplace(name, text);
    faulty_ = faulty;
    result_ = {};
    if (!folder_.empty()) next_.emplace();
}

Result<void> LastGood::prepare() const {
    Result<void> result;
    if (!texts_.empty()) result = host::make_directories(folder_);
    return result ? host::check_ownership(folder_) : result;
}

Result<void> LastGood::write(const Text& text) {
    const auto wanted = text.text + last_line(text.text);
    const auto file = host::read_file(text.path, largest, host::Links::refused);
    const bool is_there = file && *file == wanted && host::check_entry(text.path);
    return is_there ? Result<void>() : host::replace_file(text.path, wanted);
}

bool LastGood::step(const std::function<bool()>& out_of_time) {
    if (!next_) {
        if (result_) return true;
        next_.emplace();
    }
    if (next_->empty()) result_ = {};
    if (auto prepared = prepare(); !prepared) {
        result_ = std::move(prepared);
        next_.reset();
        return true;
    }
    // A shorter text may find room where a longer one did not.
    for (auto at = texts_.lower_bound(*next_); at != texts_.end(); ++at) {
        auto done = write(at->second);
        if (result_) result_ = std::move(done);
        if (!out_of_time()) continue;
        next_ = at->first + '\0'; // the first name after it
        return false;
    }
    remove_others();
    next_.reset();
    return true;
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
