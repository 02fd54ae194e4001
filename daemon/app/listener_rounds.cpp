// SPDX-License-Identifier: Apache-2.0
#include "app/listener_rounds.hpp"

#include <optional>
#include <utility>

namespace affinityd::app {

class ListenerRounds::Round final : public Job {
  public:
    Round(ListenerRounds& rounds, Place place) : rounds_(rounds), place_(std::move(place)) {}
    bool step(const OutOfTime& out_of_time) override;

  private:
    ListenerRounds& rounds_;
    Place place_;
    bool is_begun_ = false;
    std::optional<ListenerRecords::Sorted> rest_; ///< no value: targets first
};

std::unique_ptr<Job> ListenerRounds::next() {
    auto place = std::make_shared<const int>();
    waiting_ = place;
    return std::make_unique<Round>(*this, std::move(place));
}

bool ListenerRounds::begin(const Place& place) {
    if (!under_way_.expired()) return false;
    under_way_ = place;
    if (waiting_.lock() == place) waiting_.reset();
    listeners_.begin_anew();
    return true;
}

bool ListenerRounds::Round::step(const OutOfTime& out_of_time) {
    if (!is_begun_) is_begun_ = rounds_.begin(place_);
    if (!is_begun_) return false;
    auto& listeners = rounds_.listeners_;
    while (const auto* target = listeners.next_target()) {
        listeners.put_right(*target);
        if (out_of_time()) return false;
    }
    if (!rest_) rest_ = listeners.without_target();
    auto& records = listeners.records();
    while (!rest_->unwanted.empty()) {
        records.restore(rest_->unwanted.back());
        rest_->unwanted.pop_back();
        if (out_of_time()) return false;
    }
    while (!rest_->doubtful.empty()) {
        records.settle(rest_->doubtful.back(), Listeners::Clock::now());
        rest_->doubtful.pop_back();
        if (out_of_time()) return false;
    }
    listeners.end_round();
    place_.reset(); // whoever has called may keep this
    return true;
}

} // namespace affinityd::app
