// SPDX-License-Identifier: Apache-2.0
#include "planner/deal.hpp"

#include <algorithm>
#include <tuple>

namespace affinityd::planner {

namespace {

constexpr unsigned most_rounds = 6; ///< of fresh deals

} // namespace

/// All pieces one after the other where they do least harm: families as one, the heaviest first.
void Deal::deal_afresh() {
    struct Batch {
        unsigned blame;
        Weight weight;
        TaskId first;
        std::vector<unsigned> pieces;
    };
    std::vector<Batch> batches;
    for (unsigned i = 0; i < pieces_.size(); ++i) {
        if (pieces_[i].family == no_family)
            batches.push_back({fresh_.blame[i], pieces_[i].weight, pieces_[i].task, {i}});
        weigh(i, -1);
    }
    for (const auto& family : families_) {
        if (family.empty()) continue;
        Weight sum = 0;
        for (const unsigned i : family)
            sum += pieces_[i].weight;
        batches.push_back({fresh_.blame[family.front()], sum, pieces_[family.front()].task, family});
    }
    std::ranges::stable_sort(batches, {}, [](const Batch& one) {
        return std::tuple(-static_cast<int>(one.blame), -one.weight, one.first);
    });
    for (const auto& [blame, weight, first, pieces] : batches) {
        for (const unsigned i : pieces)
            weigh(i, 1); // settle() takes it away again
        const unsigned home = place_of(pieces.front()).group;
        std::pair<Weight, unsigned> best{settle(pieces, home), home};
        const auto& places = kinds_[pieces_[pieces.front()].kind].places;
        for (unsigned group = 0; pieces_[pieces.front()].family != no_family && group <= places.back().group;
             ++group)
            if (const Weight busiest = settle(pieces, group); busiest < best.first) best = {busiest, group};
        settle(pieces, best.second);
    }
}

/// Remembers the fresh deal if it is the best one yet.
bool Deal::has_another_round() {
    const auto most = std::ranges::max_element(cores_);
    if (fresh_.rounds++ == 0 || *most < fresh_.busiest) {
        fresh_.busiest = *most;
        fresh_.places.clear();
        for (const auto& piece : pieces_)
            fresh_.places.push_back(piece.place);
    }
    if (fresh_.rounds == most_rounds) return false;
    for (const auto& [kind, place] : places_on_[static_cast<std::size_t>(most - cores_.begin())])
        for (const unsigned i : kinds_[kind].pieces[place]) {
            ++fresh_.blame[i];
            if (pieces_[i].family == no_family) continue;
            for (const unsigned other : families_[pieces_[i].family])
                fresh_.blame[other] = std::max(fresh_.blame[other], fresh_.blame[i]);
        }
    return true;
}

/// The best fresh deal, if it is clearly better; and of that only what is needed.
void Deal::choose() {
    const Weight afresh = fresh_.busiest;
    const auto& fresh = fresh_.places;
    for (unsigned i = 0; i < pieces_.size(); ++i)
        put(i, chained_[i]);
    const auto most = std::ranges::max_element(cores_);
    const Weight chained = *most;
    std::size_t moves = 0;
    for (unsigned i = 0; i < pieces_.size(); ++i)
        moves += fresh[i] == chained_[i] ? 0 : 1;
    const auto core = static_cast<unsigned>(most - cores_.begin());
    const Weight limit_of_gain = chained - worth_moving(core, chained, moves);
    if (afresh > limit_of_gain) return;
    for (unsigned i = 0; i < pieces_.size(); ++i)
        put(i, fresh[i]);
    const Weight limit = std::max(afresh, std::min(limit_of_gain, afresh + afresh / 20));
    for (unsigned i = 0; i < pieces_.size(); ++i)
        if (pieces_[i].place != first_[i] &&
            kinds_[pieces_[i].kind].places[first_[i]].group == place_of(i).group &&
            (busiest_with(i, first_[i]) <= limit || pieces_[i].weight == 0))
            put(i, first_[i]);
}

} // namespace affinityd::planner
