// SPDX-License-Identifier: Apache-2.0
#include "events/listener_watch.hpp"

#include "app/listener_looks.hpp"

#include <utility>

namespace affinityd::events {

namespace {

constexpr std::chrono::milliseconds between_lists{500};
/// Anybody may listen on high ports, again and again.
constexpr std::chrono::seconds between_looks{5};

} // namespace

Result<void> ListenerWatch::add_to(sd_event* event) {
    if (auto added = next_.add_to(event); !added) return added;
    if (list() == nullptr || list()->fd() < 0) return {};
    sd_event_source* source = nullptr;
    const int status = sd_event_add_io(event, &source, list()->fd(), EPOLLIN, on_list, this);
    if (status < 0) return fail("cannot watch the list of listeners", {}, -status);
    arrived_.reset(source);
    return {};
}

void ListenerWatch::follow() {
    if (!next_.is_armed() && list() != nullptr && !manager_.in_force().world->matcher().ports().empty())
        next_.arm(between_lists);
}

void ListenerWatch::look() {
    follow();
    list()->ask();
    pass_on();
}

void ListenerWatch::pass_on() {
    if (!is_news_ || Clock::now() < asked_ + between_looks) return;
    is_news_ = false;
    asked_ = Clock::now();
    manager_.work().want(app::Work::Urgency::soon);
}

int ListenerWatch::on_list(sd_event_source*, int, std::uint32_t, void* userdata) {
    static_cast<ListenerWatch*>(userdata)->take_news();
    return 0;
}

void ListenerWatch::take_news() {
    auto news = list()->take_news();
    is_news_ |= news.has_new;
    pass_on();
    if (!news.processes.empty())
        manager_.work().add(
            std::make_unique<app::ListenerLooks>(manager_.tasks(), std::move(news.processes)));
}

} // namespace affinityd::events
