// SPDX-License-Identifier: Apache-2.0
#include "base/owned_text.hpp"

#include <utility>

namespace affinityd {

void OwnedText::add(std::string text) {
    size_ += text.size();
    if (!parts_.empty() && parts_.back().is_open)
        parts_.back().full += text;
    else
        parts_.push_back({no_owner, true, std::move(text), {}});
}

void OwnedText::add(std::uint32_t owner, std::string full, std::string redacted) {
    size_ += full.size();
    // Few long parts instead of thousands of short ones: an answer is put together in one go.
    if (!parts_.empty() && !parts_.back().is_open && parts_.back().owner == owner) {
        parts_.back().full += full;
        parts_.back().redacted += redacted;
    } else {
        parts_.push_back({owner, false, std::move(full), std::move(redacted)});
    }
}

std::string OwnedText::full() const {
    std::string text;
    text.reserve(size_);
    for (const auto& part : parts_)
        text += part.full;
    return text;
}

std::string OwnedText::seen_by(std::uint32_t user) const {
    std::string text;
    text.reserve(size_);
    for (const auto& part : parts_) {
        const bool is_owner = part.owner == user && user != no_owner;
        text += part.is_open || is_owner ? part.full : part.redacted;
    }
    return text;
}

} // namespace affinityd
