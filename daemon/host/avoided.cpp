// SPDX-License-Identifier: Apache-2.0
#include "host/avoided.hpp"

#include "base/text.hpp"
#include "host/subordinate_ids.hpp"
#include "host/wait_charges.hpp"

#include <cstdint>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>

#include <sys/types.h>

namespace affinityd::host {

namespace {

using Clock = std::chrono::steady_clock;

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
    void note_stuck(const Avoidable& what) {
        const std::lock_guard lock(mutex_);
        all_.note_stuck(what, Clock::now());
    }
    void note_back(const Avoidable& what) {
        const std::lock_guard lock(mutex_);
        all_.note_back(what, Clock::now());
    }
    bool contains(const Avoidable& what) {
        const std::lock_guard lock(mutex_);
        return all_.contain(what, Clock::now());
    }
    void charge(uid_t user, Clock::duration time) {
        const std::lock_guard lock(mutex_);
        charges_.add(persons_.person(user), time, Clock::now());
    }
    bool has_users() {
        const std::lock_guard lock(mutex_);
        return charges_.is_too_much(Clock::now());
    }
    bool contains_user(uid_t user) {
        const std::lock_guard lock(mutex_);
        return charges_.is_too_much(persons_.person(user), Clock::now());
    }

  private:
    std::mutex mutex_;
    Avoidances all_;
    WaitCharges charges_;
    SubordinateIds persons_;
};

Avoided& avoided() {
    static auto& all = *new Avoided; // a thread that is left behind may outlive what main() leaves
    return all;
}

} // namespace

void note_stuck(const Avoidable& what) { avoided().note_stuck(what); }

void note_back(const Avoidable& what) { avoided().note_back(what); }

bool is_avoided(const Avoidable& what) { return avoided().contains(what); }

void charge_wait(int pid, std::chrono::milliseconds time) {
    const auto user = pid > 0 ? user_of(pid) : std::nullopt;
    if (user && *user != 0) avoided().charge(*user, time);
}

bool is_process_avoided(int pid) {
    if (is_avoided({Avoid::process, static_cast<std::uint64_t>(pid)})) return true;
    if (!avoided().has_users()) return false;
    const auto user = user_of(pid);
    return user && avoided().contains_user(*user);
}

bool is_avoided(int pid, const Avoidable& what) { return is_avoided(what) || is_process_avoided(pid); }

} // namespace affinityd::host
