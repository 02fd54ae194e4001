// SPDX-License-Identifier: Apache-2.0
#include "control/outbox.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <tuple>

#include <linux/sockios.h>
#include <sys/ioctl.h>

namespace affinityd::control {

namespace {

constexpr std::size_t most_messages = 1024;
constexpr std::size_t frame = 1024; // what a message takes beside its text, roughly
constexpr unsigned most_looks = 5;

} // namespace

Outbox::Outbox(sd_event* event, sd_bus* bus, std::shared_ptr<Group> group, std::function<void()> end)
    : event_(event), bus_(sd_bus_ref(bus)), group_(std::move(group)), end_(std::move(end)) {
    group_->members.push_back(this);
}

Outbox::~Outbox() {
    let_go(0);
    std::erase(group_->members, this);
}

bool Outbox::drops(sd_bus_message* message) {
    look();
    std::uint8_t type = 0;
    const auto unanswered = static_cast<std::size_t>(weak_from_this().use_count());
    const bool is_full = is_closed_ || messages_ + unanswered >= most_messages ||
                         (messages_ > 0 && group_->bytes >= group_->limits.bytes);
    return is_full && sd_bus_message_get_type(message, &type) >= 0 && type == SD_BUS_MESSAGE_METHOD_CALL;
}

bool Outbox::has_room() {
    look();
    if (is_closed_ || messages_ >= most_messages) return false;
    if (group_->bytes < group_->limits.bytes) return true;
    if (messages_ > 0) return false;
    for (auto* one : group_->members)
        one->look();
    while (group_->bytes >= group_->limits.bytes)
        (*std::ranges::max_element(group_->members, {}, [](const Outbox* one) {
            return std::tuple(one->bytes_ > 0, one->looks_, one->bytes_);
        }))->close();
    return true;
}

void Outbox::sent(std::size_t bytes) {
    waiting_.push_back(bytes + frame);
    bytes_ += bytes + frame;
    group_->bytes += bytes + frame;
    look();
}

/// The library counts messages, in the order of which they leave.
void Outbox::look() {
    std::uint64_t messages = 0;
    if (is_closed_ || sd_bus_get_n_queued_write(bus_.get(), &messages) < 0) messages = 0;
    // Also what is in the socket, where megabytes have room, has not been taken.
    int unsent = 0;
    if (const int fd = sd_bus_get_fd(bus_.get()); is_closed_ || fd < 0 || ::ioctl(fd, SIOCOUTQ, &unsent) != 0)
        unsent = 0;
    if (messages < messages_ || messages < waiting_.size() || unsent < unsent_) looks_ = 0;
    let_go(messages);
    messages_ = messages;
    unsent_ = unsent;
    if (messages == 0 && unsent == 0) return timer_.reset();
    if (timer_) return;
    looks_ = 0;
    sd_event_source* source = nullptr;
    const auto wait = usec_of(group_->limits.patience / most_looks);
    if (sd_event_add_time_relative(event_, &source, CLOCK_MONOTONIC, wait, wait / 4, on_look, this) >= 0)
        timer_.reset(source);
}

/// All but so many have left.
void Outbox::let_go(std::size_t waiting) {
    for (; waiting_.size() > waiting; waiting_.pop_front()) {
        bytes_ -= waiting_.front();
        group_->bytes -= waiting_.front();
    }
}

void Outbox::close() {
    let_go(0);
    is_closed_ = true;
    timer_.reset();
    end_();
}

int Outbox::on_look(sd_event_source* source, std::uint64_t, void* userdata) {
    auto& self = *static_cast<Outbox*>(userdata);
    ++self.looks_;
    self.look();
    if (!self.timer_) return 0;
    if (self.looks_ >= most_looks) {
        self.close();
        return 0;
    }
    sd_event_source_set_time_relative(source, usec_of(self.group_->limits.patience / most_looks));
    sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    return 0;
}

} // namespace affinityd::control
