// SPDX-License-Identifier: Apache-2.0
#include "measure/object_reader.hpp"

#include <algorithm>
#include <cmath>

namespace affinityd::measure {

using nlohmann::json;

namespace {

constexpr std::size_t most_text = 4096;

} // namespace

ObjectReader::ObjectReader(const json& value, std::string name, std::string& fault)
    : value_(value), name_(std::move(name)), fault_(fault) {
    if (!value.is_object()) complain("", "expected an object");
}

void ObjectReader::finish() {
    if (!fault_.empty()) return;
    for (const auto& [key, member] : value_.items())
        if (!read_.contains(key)) complain(key, "unknown key");
}

void ObjectReader::read(const char* key, std::string& out) {
    const auto* member = find(key);
    if (member == nullptr) return;
    const auto* text = member->get_ptr<const std::string*>();
    if (text == nullptr || text->size() > most_text) return complain(key, "expected a short text");
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
    if (std::ranges::any_of(*text, is_control)) return complain(key, "holds control characters");
    out = *text;
}

void ObjectReader::read(const char* key, bool& out) {
    const auto* member = find(key);
    if (member == nullptr) return;
    if (!member->is_boolean()) return complain(key, "expected true or false");
    out = member->get<bool>();
}

void ObjectReader::read(const char* key, double& out, double most) {
    const auto* member = find(key);
    if (member == nullptr) return;
    const double number = member->is_number() ? member->get<double>() : NAN;
    if (!std::isfinite(number) || number < 0 || number > most)
        return complain(key, "expected a number that is not negative");
    out = number;
}

void ObjectReader::read(const char* key, std::optional<std::uint64_t>& out) {
    if (is_null(key)) return;
    out.emplace();
    read(key, *out);
}

void ObjectReader::read(const char* key, std::optional<double>& out, double most) {
    if (is_null(key)) return;
    out.emplace();
    read(key, *out, most);
}

const json* ObjectReader::read_any(const char* key) { return is_null(key) ? nullptr : find(key); }

void ObjectReader::complain(std::string_view key, const char* what) {
    if (!fault_.empty()) return;
    fault_ = name_;
    if (!key.empty()) fault_ += (name_.empty() ? "" : ".") + std::string(key.substr(0, 64));
    fault_ += fault_.empty() ? what : std::string(": ") + what;
}

const json* ObjectReader::find(const char* key) {
    if (!fault_.empty()) return nullptr;
    const auto at = value_.find(key);
    if (at == value_.end()) {
        complain(key, "missing");
        return nullptr;
    }
    read_.insert(key);
    return &*at;
}

bool ObjectReader::is_null(const char* key) {
    const auto* member = find(key);
    return member == nullptr || member->is_null();
}

std::optional<std::uint64_t> ObjectReader::whole(const char* key, std::uint64_t most) {
    const auto* member = find(key);
    if (member == nullptr) return std::nullopt;
    if (!member->is_number_unsigned() || member->get<std::uint64_t>() > most) {
        complain(key, "expected a whole number in range");
        return std::nullopt;
    }
    return member->get<std::uint64_t>();
}

} // namespace affinityd::measure
