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
    void note_stuck(const Stuck& call) {
        const std::lock_guard lock(mutex_);
        for (const auto& one : call.what)
            all_.note_stuck(one, Clock::now());
        if (call.payer) charges_.add_away(*call.payer, Clock::now());
    }
    void note_back(const Stuck& call) {
        const std::lock_guard lock(mutex_);
        for (const auto& one : call.what)
            all_.note_back(one, Clock::now());
        if (call.payer) charges_.end_away(*call.payer);
    }
    void end_rests() {
        const std::lock_guard lock(mutex_);
        all_.end_rests();
        charges_.forgive();
    }
    bool contains(const Avoidable& what) {
        const std::lock_guard lock(mutex_);
        return all_.contain(what, Clock::now());
    }
    uid_t person(uid_t user) {
        const std::lock_guard lock(mutex_);
        return persons_.person(user);
    }
    void charge(uid_t payer, Clock::duration time) {
        const std::lock_guard lock(mutex_);
        charges_.add(payer, time, Clock::now());
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

void note_stuck(const Stuck& call) { avoided().note_stuck(call); }

void note_back(const Stuck& call) { avoided().note_back(call); }

bool is_avoided(const Avoidable& what) { return avoided().contains(what); }

void end_rests() { avoided().end_rests(); }

std::optional<uid_t> payer_of(int pid) {
    const auto user = pid > 0 ? user_of(pid) : std::nullopt;
    return user && *user != 0 ? std::optional(avoided().person(*user)) : std::nullopt;
}

void charge_wait(uid_t payer, std::chrono::milliseconds time) { avoided().charge(payer, time); }

bool is_process_avoided(int pid) {
    if (is_avoided({Avoid::process, static_cast<std::uint64_t>(pid)})) return true;
    if (!avoided().has_users()) return false;
    const auto user = user_of(pid);
    return user && avoided().contains_user(*user);
}

bool is_avoided(int pid, const Avoidable& what) { return is_avoided(what) || is_process_avoided(pid); }

} // namespace affinityd::host
