// SPDX-License-Identifier: Apache-2.0
#include "coexist/peer_journal.hpp"

#include "state/journal.hpp"
#include "state/record.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <unistd.h>

namespace affinityd::coexist {

namespace {

constexpr std::size_t most_bytes = 16U << 20;
constexpr std::size_t chunk_bytes = 16384;
constexpr std::size_t longest_line = 65536;
constexpr std::size_t most_shared = 1000;

} // namespace

/// False: the end of the file, or of what is read of it.
bool PeerJournal::fill() {
    text_.erase(0, at_);
    at_ = 0;
    if (read_ >= most_bytes || text_.size() > longest_line) return false;
    std::array<char, chunk_bytes> chunk; // NOLINT: filled by read
    ssize_t got = 0;
    do {
        got = ::read(file_.get(), chunk.data(), chunk.size());
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return false;
    read_ += static_cast<std::size_t>(got);
    text_.append(chunk.data(), static_cast<std::size_t>(got));
    return true;
}

/// The last line of a subject is its state.
void PeerJournal::take_line(const state::Journal& own, std::string_view line) {
    const auto record = state::parse_line(line);
    if (!record) return;
    if (const auto* task = std::get_if<planner::TaskMask>(&record->subject)) {
        if (!record->undo)
            tasks_.erase(task->task);
        else if (tasks_.size() < most_shared && own.contains(record->subject))
            tasks_.insert_or_assign(task->task, *task);
        return;
    }
    const auto known = std::ranges::find(others_, record->subject);
    if (!record->undo && known != others_.end())
        others_.erase(known);
    else if (record->undo && known == others_.end() && others_.size() < most_shared &&
             own.contains(record->subject))
        others_.push_back(record->subject);
}

bool PeerJournal::step(const state::Journal& own, const std::function<bool()>& out_of_time) {
    do {
        const auto end = text_.find('\n', at_);
        if (end == std::string::npos) {
            if (!fill()) return true; // what is left is a torn line
            continue;
        }
        take_line(own, std::string_view(text_).substr(at_, end - at_));
        at_ = end + 1;
    } while (!out_of_time());
    return false;
}

std::vector<planner::Subject> PeerJournal::take_shared() {
    std::vector<planner::Subject> shared;
    for (const auto& [id, task] : tasks_)
        shared.emplace_back(task);
    for (auto& other : others_)
        shared.push_back(std::move(other));
    if (shared.size() > most_shared) shared.resize(most_shared);
    return shared;
}

} // namespace affinityd::coexist
