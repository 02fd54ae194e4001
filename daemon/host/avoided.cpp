// SPDX-License-Identifier: Apache-2.0
#include "host/avoided.hpp"

#include "base/text.hpp"
#include "host/subordinate_ids.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <sys/types.h>

namespace affinityd::host {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_charged = 1024;
constexpr std::chrono::minutes charged_for{10};

/// The real one: a program that is setuid is its starter's.
std::optional<uid_t> user_of(int pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with("Uid:")) continue;
        const auto words = split_words(line);
        return words.size() > 1 ? parse_number<uid_t>(words[1]) : std::nullopt;
    }
    return std::nullopt;
}

class Avoided {
  public:
    void begin(const Avoidable& what) {
        const std::lock_guard lock(mutex_);
        all_.begin(what, Clock::now());
    }
    void end(const Avoidable& what) {
        const std::lock_guard lock(mutex_);
        all_.end(what, Clock::now());
    }
    bool contains(const Avoidable& what) {
        const std::lock_guard lock(mutex_);
        return all_.contain(what, Clock::now());
    }
    bool has_users() {
        const std::lock_guard lock(mutex_);
        return all_.contain(Avoid::user, Clock::now());
    }
    uid_t person(uid_t user) {
        const std::lock_guard lock(mutex_);
        return persons_.person(user);
    }
    void charge(uid_t user, Clock::duration time) {
        const std::lock_guard lock(mutex_);
        const auto person = persons_.person(user);
        const auto now = Clock::now();
        std::erase_if(charged_, [&](const auto& one) { return one.second.begun + charged_for <= now; });
        if (charged_.size() >= most_charged && !charged_.contains(person))
            charged_.erase(
                std::ranges::min_element(charged_, {}, [](const auto& one) { return one.second.sum; }));
        const auto charge = charged_.try_emplace(person, Charge{now, {}}).first;
        charge->second.sum += time;
        if (charge->second.sum <= longest_of_user) return;
        charged_.erase(charge);
        all_.begin({Avoid::user, person}, now); // his calls may have come back: he rests from now on
        all_.end({Avoid::user, person}, now);
    }

  private:
    struct Charge {
        Clock::time_point begun;
        Clock::duration sum;
    };
    std::mutex mutex_;
    Avoidances all_;
    std::map<uid_t, Charge> charged_;
    SubordinateIds persons_;
};

Avoided& avoided() {
    static auto& all = *new Avoided; // a thread that is left behind may outlive what main() leaves
    return all;
}

} // namespace

void begin_to_avoid(const Avoidable& what) { avoided().begin(what); }

void end_to_avoid(const Avoidable& what) { avoided().end(what); }

bool is_avoided(const Avoidable& what) { return avoided().contains(what); }

void charge_wait(int pid, std::chrono::milliseconds time) {
    const auto user = pid > 0 ? user_of(pid) : std::nullopt;
    if (user && *user != 0) avoided().charge(*user, time);
}

bool is_process_avoided(int pid) {
    if (is_avoided({Avoid::process, static_cast<std::uint64_t>(pid)})) return true;
    if (!avoided().has_users()) return false;
    const auto user = user_of(pid);
    return user && is_avoided({Avoid::user, avoided().person(*user)});
}

} // namespace affinityd::host
