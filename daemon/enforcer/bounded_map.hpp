// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/subject.hpp"

#include <list>
#include <unordered_map>
#include <utility>

namespace affinityd::enforcer {

/// A value for each of some subjects, in the order of their arrival. If there are too many, the oldest makes
/// room: what others can grow must not eat memory, and must not hide what is new.
template <class Value>
class BoundedMap {
  public:
    using Entries = std::list<std::pair<machine::Subject, Value>>;
    explicit BoundedMap(std::size_t most) : most_(most) {}
    BoundedMap(const BoundedMap&) = delete;
    BoundedMap& operator=(const BoundedMap&) = delete;

    [[nodiscard]] const Value* find(const machine::Subject& subject) const {
        const auto found = index_.empty() ? index_.end() : index_.find(subject);
        return found == index_.end() ? nullptr : &found->second->second;
    }
    [[nodiscard]] bool contains(const machine::Subject& subject) const { return find(subject) != nullptr; }

    /// The subject's value, made anew if it has none.
    Value& operator[](const machine::Subject& subject) {
        if (const auto found = index_.find(subject); found != index_.end()) return found->second->second;
        if (entries_.size() >= most_) erase(entries_.begin());
        entries_.emplace_back(subject, Value{});
        index_.emplace(subject, std::prev(entries_.end()));
        return entries_.back().second;
    }

    void erase(const machine::Subject& subject) {
        if (index_.empty()) return;
        if (const auto found = index_.find(subject); found != index_.end()) erase(found->second);
    }
    void clear() {
        index_.clear();
        entries_.clear();
    }
    /// The oldest becomes the youngest. There must be one.
    void rotate() { entries_.splice(entries_.end(), entries_, entries_.begin()); }

    [[nodiscard]] const Entries& entries() const { return entries_; } ///< the oldest first
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] bool empty() const { return entries_.empty(); }

  private:
    void erase(typename Entries::iterator at) {
        index_.erase(at->first);
        entries_.erase(at);
    }
    std::size_t most_;
    Entries entries_;
    std::unordered_map<machine::Subject, typename Entries::iterator> index_;
};

} // namespace affinityd::enforcer
