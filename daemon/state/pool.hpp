// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace affinityd::state {

/// Keeps one copy of values that many records share, such as policy names and CPU masks. A value lives as
/// long as somebody uses its number.
template <class Value>
class Pool {
  public:
    using Id = std::uint32_t;

    /// The value's number. Each call is answered by one release().
    Id take(const Value& value) {
        const auto [at, is_new] = ids_.try_emplace(value);
        if (is_new) at->second.id = add(&at->first);
        ++at->second.users;
        return at->second.id;
    }
    void release(Id id) {
        const auto at = ids_.find(*values_[id]);
        if (--at->second.users > 0) return;
        values_[id] = nullptr;
        free_.push_back(id);
        ids_.erase(at);
    }
    [[nodiscard]] const Value& operator[](Id id) const { return *values_[id]; }
    [[nodiscard]] bool contains(const Value& value) const { return ids_.contains(value); }
    [[nodiscard]] std::size_t size() const { return ids_.size(); } ///< different values

  private:
    struct Use {
        Id id = 0;
        std::uint32_t users = 0;
    };
    Id add(const Value* value) {
        if (free_.empty()) {
            values_.push_back(value);
            return static_cast<Id>(values_.size() - 1);
        }
        const Id id = free_.back();
        free_.pop_back();
        values_[id] = value;
        return id;
    }
    std::unordered_map<Value, Use> ids_;
    std::vector<const Value*> values_; ///< by number; they point to the keys, which stay where they are
    std::vector<Id> free_;
};

} // namespace affinityd::state
