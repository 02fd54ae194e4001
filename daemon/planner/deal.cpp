// SPDX-License-Identifier: Apache-2.0
#include "planner/deal.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

namespace affinityd::planner {

namespace {

constexpr unsigned longest_chain = 4;
constexpr unsigned most_looks = 6'000;       ///< at places, for one core: less than a millisecond
constexpr unsigned most_for_family = 60'000; ///< the same for families, which seldom move
constexpr Weight most_steps = 64;            ///< moves that relieve one core, in one go
constexpr std::size_t most_detours = 8;      ///< by which a chain may begin
constexpr std::size_t most_candidates = 24;  ///< of one core
constexpr std::size_t glances_per_look = 16; ///< at pieces: these take as long as a look at a place
constexpr std::size_t most_pieces = 4'000;   ///< that are dealt afresh
constexpr std::size_t most_afresh = 500'000; ///< looks at places in a fresh deal: a few milliseconds

constexpr double sure = 3; ///< standard errors

constexpr double few_moves = 16;

constexpr Weight next_to_nothing = one_cpu / 50; ///< a core that has less need not be relieved

/// Of the places in a group all that are on several cores, and of the others the one whose core has least: it
/// is the best for any weight.
std::vector<unsigned> open_places(const auto& places, unsigned group, const auto& cores) {
    std::vector<unsigned> found;
    std::pair<Weight, unsigned> least{std::numeric_limits<Weight>::max(), 0};
    for (unsigned place = 0; place < places.size(); ++place) {
        if (places[place].group != group) continue;
        if (places[place].parts.size() > 1)
            found.push_back(place);
        else
            least = std::min(least, {cores[places[place].parts.front().core], place});
    }
    if (least.first < std::numeric_limits<Weight>::max()) found.push_back(least.second);
    return found;
}

} // namespace

/// What the busiest core must gain for anybody to move.
Weight least_gain(Weight load) {
    const Weight small = std::min(one_cpu / 12, load / 6); // little work is worth less
    return std::max(small, load / 14);
}

bool Deal::Trial::has_moved(unsigned piece) const {
    return std::ranges::find(done, piece, &std::pair<unsigned, unsigned>::first) != done.end();
}

unsigned Deal::add_kind(std::vector<Place> places) {
    const auto kind = static_cast<unsigned>(kinds_.size());
    for (unsigned i = 0; i < places.size(); ++i)
        for (const auto& part : places[i].parts) {
            if (part.core >= places_on_.size()) places_on_.resize(part.core + 1U);
            places_on_[part.core].emplace_back(kind, i);
        }
    std::vector<std::vector<unsigned>> none(places.size());
    kinds_.push_back({std::move(places), std::move(none)});
    return kind;
}

unsigned Deal::add(const Piece& piece) {
    const auto number = static_cast<unsigned>(pieces_.size());
    pieces_.push_back(piece);
    first_.push_back(piece.place);
    kinds_[piece.kind].pieces[piece.place].push_back(number);
    return number;
}

unsigned Deal::add_family(std::vector<unsigned> pieces) {
    families_.push_back(std::move(pieces));
    return static_cast<unsigned>(families_.size()) - 1;
}

void Deal::start(const CpuLoad& load, const LoadErrors& errors) {
    cores_.resize(places_on_.size());
    for (unsigned core = 0; core < cores_.size(); ++core)
        if (!places_on_[core].empty()) cores_[core] = load.on_core(core);
    vary_.resize(places_on_.size());
    for (const auto& [cpu, error] : errors)
        if (const auto core = load.core_of(cpu); core < vary_.size())
            vary_[core] += std::pow(static_cast<double>(error), 2);
    try_all_cores();
}

void Deal::try_all_cores() {
    for (unsigned core = 0; core < cores_.size(); ++core)
        if (!places_on_[core].empty()) left_.insert(core);
}

const Deal::Place& Deal::place_of(unsigned piece) const {
    return kinds_[pieces_[piece].kind].places[pieces_[piece].place];
}

/// What a core must gain for anybody to move: more than chance may have brought about, and the more for many
/// moves.
Weight Deal::worth_moving(unsigned core, Weight load, std::size_t moves) const {
    double sum = vary_[core];
    for (const auto& [number, index] : places_on_[core]) {
        const auto& kind = kinds_[number];
        if (kind.places.size() < 2) continue;
        const auto cpus = static_cast<double>(kind.places[index].cpus);
        for (const unsigned i : kind.pieces[index])
            sum += std::pow(static_cast<double>(pieces_[i].error) / cpus, 2);
    }
    return std::max(least_gain(load), static_cast<Weight>(sure * std::sqrt(sum) *
                                                          (1 + static_cast<double>(moves) / few_moves)));
}

/// Pieces that may leave a core: of those that are alike, one; the heaviest first.
std::vector<unsigned> Deal::candidates(unsigned core, Trial& trial) const {
    std::map<std::tuple<Weight, unsigned, unsigned, unsigned>, unsigned> best; // what makes them alike: which
    std::size_t seen = 0;
    for (const auto& [number, index] : places_on_[core]) {
        const auto& kind = kinds_[number];
        if (kind.places.size() < 2) continue;
        seen += kind.pieces[index].size();
        for (const unsigned i : kind.pieces[index]) {
            const auto& piece = pieces_[i];
            const bool is_lighter =
                best.size() == most_candidates && -piece.weight > std::get<0>(best.rbegin()->first);
            if (piece.weight <= 0 || is_lighter || trial.has_moved(i)) continue;
            const auto [at, is_new] =
                best.try_emplace({-piece.weight, piece.kind, piece.place, piece.family}, i);
            if (!is_new && piece.task < pieces_[at->second].task) at->second = i;
            if (best.size() > most_candidates) best.erase(std::prev(best.end()));
        }
    }
    trial.looks -= std::min(trial.looks, static_cast<unsigned>(seen / glances_per_look));
    std::vector<unsigned> found;
    for (const auto& [alike, piece] : best)
        found.push_back(piece);
    std::ranges::sort(found, {}, [&](unsigned i) { return std::pair(-pieces_[i].weight, pieces_[i].task); });
    return found;
}

/// The load of the busiest core of a place after the piece has come.
Weight Deal::busiest_with(unsigned piece, unsigned place) const {
    const auto& [group, count, parts] = kinds_[pieces_[piece].kind].places[place];
    const Weight each = pieces_[piece].weight / count;
    Weight busiest = 0;
    for (const auto& [core, cpus] : parts)
        busiest = std::max(busiest, cores_[core] + each * cpus);
    return busiest;
}

void Deal::weigh(unsigned piece, int sign) {
    const auto& [group, count, parts] = place_of(piece);
    const Weight each = sign * (pieces_[piece].weight / count);
    for (const auto& [core, cpus] : parts)
        cores_[core] += each * cpus;
}

void Deal::put(unsigned number, unsigned place) {
    auto& piece = pieces_[number];
    auto& kind = kinds_[piece.kind];
    if (piece.place == place) return;
    weigh(number, -1);
    std::erase(kind.pieces[piece.place], number);
    kind.pieces[place].push_back(number);
    piece.place = place;
    weigh(number, 1);
}

void Deal::undo(Trial& trial, std::size_t to) {
    while (trial.done.size() > to) {
        const auto [piece, place] = trial.done.back();
        trial.done.pop_back();
        put(piece, place);
    }
}

/// The one piece whose leaving is enough, or helps most, to the place that is best for it.
bool Deal::move_one(unsigned core, const std::vector<unsigned>& pieces, Trial& trial) {
    struct Choice {
        bool is_short; ///< it is not enough
        Weight weight; ///< the lightest that is enough; else the heaviest
        Weight busiest;
        unsigned piece, place;
    };
    std::optional<Choice> best;
    const auto key = [](const Choice& choice) {
        return std::tuple(choice.is_short, choice.weight, choice.busiest);
    };
    std::map<std::pair<unsigned, unsigned>, std::vector<unsigned>> open; // by kind and group
    for (const unsigned piece : pieces) {
        const auto& here = place_of(piece);
        const Weight weight = pieces_[piece].weight;
        const bool is_short = cores_[core] - weight / here.cpus > trial.limit;
        const auto [at, is_new] = open.try_emplace({pieces_[piece].kind, here.group});
        if (is_new && trial.looks > 0) {
            const auto& places = kinds_[pieces_[piece].kind].places;
            at->second = open_places(places, here.group, cores_);
            trial.looks -= std::min(trial.looks, static_cast<unsigned>(places.size()));
        }
        for (const unsigned place : at->second) {
            if (place == pieces_[piece].place) continue;
            trial.looks -= std::min(trial.looks, 1U);
            const Weight busiest = busiest_with(piece, place);
            if (busiest > trial.limit) continue;
            const Choice choice{is_short, is_short ? -weight : weight, busiest, piece, place};
            if (!best || key(choice) < key(*best)) best = choice;
        }
    }
    if (!best) return false;
    trial.done.emplace_back(best->piece, pieces_[best->piece].place);
    put(best->piece, best->place);
    return true;
}

/// How much work of pieces that have several places is on a core.
Deal::Movable Deal::can_leave(unsigned core, const Trial& trial) const {
    Movable sum;
    for (const auto& [number, index] : places_on_[core]) {
        const auto& kind = kinds_[number];
        if (kind.places.size() < 2) continue;
        sum.pieces += static_cast<unsigned>(kind.pieces[index].size());
        for (const unsigned i : kind.pieces[index])
            if (!trial.has_moved(i)) sum.work += pieces_[i].weight / kind.places[index].cpus;
    }
    return sum;
}

/// A piece takes a place that is too full for it, whose pieces then have to go on: the least full places
/// first.
bool Deal::move_chain(unsigned core, const std::vector<unsigned>& pieces, Trial& trial) {
    struct Detour {
        Weight busiest;
        unsigned piece, place, other, looks;
    };
    std::map<unsigned, Movable> movable; // of each core
    std::vector<Detour> detours;
    for (const unsigned piece : pieces) {
        const auto& places = kinds_[pieces_[piece].kind].places;
        const unsigned group = place_of(piece).group;
        for (unsigned place = 0; place < places.size() && trial.looks > 0; ++place) {
            --trial.looks;
            const auto& parts = places[place].parts;
            if (place == pieces_[piece].place || places[place].group != group || parts.size() > 1) continue;
            const auto [other, cpus] = parts.front();
            const Weight more = pieces_[piece].weight / places[place].cpus * cpus;
            if (other == core || more > trial.limit) continue;
            const auto [at, is_new] = movable.try_emplace(other);
            if (is_new) at->second = can_leave(other, trial);
            if (cores_[other] + more - at->second.work <= trial.limit)
                detours.push_back({cores_[other] + more, piece, place, other, at->second.pieces});
        }
    }
    std::ranges::stable_sort(detours, {}, &Detour::busiest);
    if (detours.size() > most_detours) detours.resize(most_detours);
    const auto mark = trial.done.size();
    const unsigned steps = trial.steps;
    for (const auto& [busiest, piece, place, other, looks] : detours) {
        if (trial.looks <= looks) break;
        trial.looks -= looks;
        trial.done.emplace_back(piece, pieces_[piece].place);
        put(piece, place);
        --trial.steps;
        if (relieve(other, trial) && relieve(core, trial)) return true;
        undo(trial, mark);
        trial.steps = steps;
    }
    return false;
}

/// Puts a family into a group, the heaviest first; the load of the busiest core that it touches.
Weight Deal::settle(const std::vector<unsigned>& family, unsigned group) {
    for (const unsigned piece : family)
        weigh(piece, -1);
    Weight busiest = 0;
    for (const unsigned number : family) {
        auto& piece = pieces_[number];
        auto& kind = kinds_[piece.kind];
        std::tuple<Weight, bool, unsigned> best{std::numeric_limits<Weight>::max(), true, piece.place};
        const auto inside = std::ranges::equal_range(kind.places, group, {}, &Place::group);
        const auto end = static_cast<unsigned>(inside.end() - kind.places.begin());
        for (auto place = static_cast<unsigned>(inside.begin() - kind.places.begin()); place < end; ++place)
            best = std::min(best, {busiest_with(number, place), place != first_[number], place});
        if (const unsigned place = std::get<2>(best); place != piece.place) {
            std::erase(kind.pieces[piece.place], number);
            kind.pieces[place].push_back(number);
            piece.place = place;
        }
        weigh(number, 1);
        busiest = std::max(busiest, std::get<0>(best));
    }
    return busiest;
}

/// A piece leaves with its family for another group.
bool Deal::move_family(const std::vector<unsigned>& pieces, Trial& trial) {
    std::set<unsigned> tried;
    for (const unsigned piece : pieces) {
        const unsigned number = pieces_[piece].family;
        if (number == no_family || !tried.insert(number).second) continue;
        const auto& family = families_[number];
        if (std::ranges::any_of(family, [&](unsigned i) { return trial.has_moved(i); })) continue;
        const auto& places = kinds_[pieces_[piece].kind].places;
        const unsigned home = place_of(piece).group, groups = places.back().group + 1;
        const auto looks = places.size() / groups * family.size();
        for (unsigned group = 0; group < groups && trial.family_looks > looks; ++group) {
            if (group == home) continue;
            const auto mark = trial.done.size();
            for (const unsigned i : family)
                trial.done.emplace_back(i, pieces_[i].place);
            trial.family_looks -= static_cast<unsigned>(looks);
            if (settle(family, group) <= trial.limit) return true;
            undo(trial, mark);
        }
    }
    return false;
}

bool Deal::relieve(unsigned core, Trial& trial) {
    while (cores_[core] > trial.limit) {
        if (trial.steps == 0 || trial.looks == 0) return false;
        const auto pieces = candidates(core, trial);
        if (!move_one(core, pieces, trial) && !move_family(pieces, trial))
            return trial.steps > 1 && move_chain(core, pieces, trial);
        --trial.steps;
    }
    return true;
}

/// False: no core is left that could have less.
bool Deal::relieve_busiest() {
    const auto busiest = std::ranges::max_element(left_, {}, [&](unsigned core) { return cores_[core]; });
    if (busiest == left_.end()) return false;
    const unsigned core = *busiest;
    const Weight load = cores_[core];
    if (load < next_to_nothing) return false;
    // A fresh deal may be improved by little: whether it is worth its moves is decided at the end.
    const Weight gain = stage_ == Stage::polish ? load / 50 : worth_moving(core, load);
    Trial trial{load - gain, longest_chain, most_looks, most_for_family, {}};
    // Of very many pieces more have to go.
    if (const auto [work, pieces] = can_leave(core, trial); work > 0)
        trial.steps =
            std::max(trial.steps,
                     static_cast<unsigned>(std::min(most_steps, gain * pieces / work + longest_chain - 1)));
    if (relieve(core, trial)) return true;
    // What was found before time was up is a relief, too, if it is half of what was wanted.
    const bool is_over = trial.looks == 0 || trial.steps == 0;
    if (is_over && (load - cores_[core]) * 2 >= gain) return true;
    undo(trial, 0);
    left_.erase(core);
    return true;
}

bool Deal::improve() {
    if (stage_ == Stage::chains && !relieve_busiest()) {
        std::size_t work = 0;
        for (std::size_t i = 0; i < pieces_.size() && pieces_.size() < most_pieces; ++i) {
            const auto& places = kinds_[pieces_[i].kind].places;
            const std::size_t times = pieces_[i].family == no_family ? 2 : places.back().group + 3;
            work += times * places.size() * places.front().parts.size();
        }
        stage_ = work > 0 && work < most_afresh ? Stage::afresh : Stage::done;
    } else if (stage_ == Stage::afresh) {
        for (const auto& piece : pieces_)
            if (chained_.size() < pieces_.size()) chained_.push_back(piece.place);
        fresh_.blame.resize(pieces_.size());
        deal_afresh();
        try_all_cores();
        stage_ = Stage::polish;
    } else if (stage_ == Stage::polish) {
        const auto before = left_.size();
        const Weight most = cores_.empty() ? 0 : std::ranges::max(cores_);
        // Only the busiest counts: it has to be better than what the chains came to.
        if (!relieve_busiest() || (left_.size() < before && std::ranges::max(cores_) == most))
            stage_ = has_another_round() ? Stage::afresh : Stage::choose;
    } else if (stage_ == Stage::choose) {
        choose();
        stage_ = Stage::done;
    }
    return stage_ != Stage::done;
}

} // namespace affinityd::planner
