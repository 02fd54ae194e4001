// SPDX-License-Identifier: Apache-2.0
#include "app/unfinished_turns.hpp"

#include <utility>

namespace affinityd::app {

namespace {

constexpr std::size_t most_under_way = 16; // of one person
// More is a storm: a pass finds those that are left out.
constexpr std::size_t most_names_of_person = 4096, most_names = 16'384;

} // namespace

bool UnfinishedTurns::name_again(int pid, const ProcessChange& change) {
    const auto found = names_.find(pid);
    if (found == names_.end()) return false;
    auto& known = found->second;
    if (!known) known = change;
    if (change.creator) known->creator = change.creator;
    known->is_executed |= change.is_executed;
    known->has_changed |= change.has_changed;
    return true;
}

bool UnfinishedTurns::put(uid_t person, Turn turn) {
    const int pid = turn.scan.id().tid;
    if (name_again(pid, turn.change)) return true;
    if (names_.size() >= most_names) return false;
    const auto [found, is_new] = persons_.try_emplace(person);
    auto& [under_way, waiting, began_one] = found->second;
    if (under_way.size() + waiting.size() >= most_names_of_person) return false;
    if (is_new) turns_.push_back(person);
    const bool has_begun = pid == taken_;
    if (under_way.size() < most_under_way && (has_begun || waiting.empty())) {
        names_[pid] = std::exchange(turn.again, std::nullopt);
        under_way.push_back(std::move(turn));
    } else {
        names_[pid] = turn.change;
        waiting.push_back(pid);
    }
    return true;
}

std::optional<ProcessChange> UnfinishedTurns::take_name(int pid) {
    taken_ = pid;
    auto node = names_.extract(pid);
    return node ? std::move(node.mapped()) : std::nullopt;
}

UnfinishedTurns::Next UnfinishedTurns::take() {
    taken_from_ = turns_.front();
    turns_.pop_front();
    const auto found = persons_.find(taken_from_);
    auto& [under_way, waiting, began_one] = found->second;
    const bool begins_one =
        !waiting.empty() && under_way.size() < most_under_way && (under_way.empty() || !began_one);
    began_one = begins_one;
    const auto next = [&]() -> Next {
        if (begins_one) {
            const int pid = waiting.front();
            waiting.pop_front();
            return Name{pid, take_name(pid).value_or(ProcessChange{})};
        }
        Turn turn = std::move(under_way.front());
        under_way.pop_front();
        turn.again = take_name(turn.scan.id().tid);
        return turn;
    };
    auto taken = next();
    if (under_way.empty() && waiting.empty())
        persons_.erase(found);
    else
        turns_.push_back(taken_from_); // others have their turn first
    return taken;
}

void UnfinishedTurns::clear() {
    persons_.clear();
    turns_.clear();
    names_.clear();
    taken_ = 0;
}

} // namespace affinityd::app
