// SPDX-License-Identifier: Apache-2.0
#include "host/avoided.hpp"

#include "base/text.hpp"
#include "host/subordinate_ids.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

namespace affinityd::host {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_avoided = 1024, most_charged = 1024;
constexpr std::chrono::minutes avoided_for{10};

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
    void add(Avoid kind, std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        forget_old();
        if (until_.size() >= most_avoided)
            until_.erase(std::ranges::min_element(until_, {}, &decltype(until_)::value_type::second));
        until_[{kind, number}] = Clock::now() + avoided_for;
    }
    bool contains(Avoid kind, std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        if (until_.empty()) return false;
        forget_old();
        return until_.contains({kind, number});
    }
    bool has_users() {
        const std::lock_guard lock(mutex_);
        return std::ranges::any_of(until_, [](const auto& one) { return one.first.first == Avoid::user; });
    }
    uid_t person(uid_t user) {
        const std::lock_guard lock(mutex_);
        return persons_.person(user);
    }
    /// True: it is too much.
    bool charge(uid_t person, Clock::duration time) {
        const std::lock_guard lock(mutex_);
        const auto now = Clock::now();
        std::erase_if(charged_, [&](const auto& one) { return one.second.begun + avoided_for <= now; });
        if (charged_.size() >= most_charged && !charged_.contains(person))
            charged_.erase(
                std::ranges::min_element(charged_, {}, [](const auto& one) { return one.second.sum; }));
        auto& charge = charged_.try_emplace(person, Charge{now, {}}).first->second;
        charge.sum += time;
        return charge.sum > longest_of_user;
    }

  private:
    struct Charge {
        Clock::time_point begun;
        Clock::duration sum;
    };
    void forget_old() {
        std::erase_if(until_, [now = Clock::now()](const auto& one) { return one.second <= now; });
    }
    std::mutex mutex_;
    std::map<std::pair<Avoid, std::uint64_t>, Clock::time_point> until_;
    std::map<uid_t, Charge> charged_;
    SubordinateIds persons_;
};

Avoided& avoided() {
    static auto& all = *new Avoided; // a thread that is left behind may outlive what main() leaves
    return all;
}

} // namespace

void avoid(Avoid kind, std::uint64_t number) { avoided().add(kind, number); }

bool is_avoided(Avoid kind, std::uint64_t number) { return avoided().contains(kind, number); }

void charge_wait(int pid, std::chrono::milliseconds time) {
    const auto user = pid > 0 ? user_of(pid) : std::nullopt;
    if (!user || *user == 0) return;
    const auto person = avoided().person(*user);
    if (avoided().charge(person, time)) avoid(Avoid::user, person);
}

bool is_process_avoided(int pid) {
    if (is_avoided(Avoid::process, static_cast<std::uint64_t>(pid))) return true;
    if (!avoided().has_users()) return false;
    const auto user = user_of(pid);
    return user && is_avoided(Avoid::user, avoided().person(*user));
}

} // namespace affinityd::host
