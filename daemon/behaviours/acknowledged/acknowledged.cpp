// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "behaviours/list.hpp"
#include "host/file.hpp"
#include "status/json.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityd::behaviours {

namespace {

using std::chrono::system_clock;

/// Problems that an administrator knows of: no part of the verdict until their time is over. A file in the
/// state folder has a line for each: the end, in seconds since 1970, and the name.
class Acknowledged final : public Behaviour {
  public:
    explicit Acknowledged(Daemon& daemon) : shared_(daemon.shared()) {
        const auto text = host::read_file(file());
        if (!text || !*text) return;
        for (const auto line : split(**text, '\n'))
            if (const auto words = split_words(line); words.size() >= 2)
                if (const auto end = parse_number<std::int64_t>(words[0]); end)
                    known_[std::string(line.substr(words[0].size() + 1))] =
                        system_clock::time_point(std::chrono::seconds(*end));
    }
    bool run(Order& order) override {
        if (order.verb != "Acknowledge") return false;
        order.answer(acknowledge(order.arguments.at(0), order.arguments.at(1), order.user));
        return true;
    }
    void report(status::Overview& into) const override {
        for (const auto& [name, end] : known_)
            if (end > system_clock::now()) into.acknowledged.emplace(name, end);
    }

  private:
    [[nodiscard]] std::string file() const { return shared_.settings.state_dir + "/acknowledged"; }
    [[nodiscard]] Result<std::string> acknowledge(const std::string& name, const std::string& seconds,
                                                  uid_t user);

    Shared& shared_;
    status::Acknowledged known_;
};

Result<std::string> Acknowledged::acknowledge(const std::string& name, const std::string& seconds,
                                              uid_t user) {
    const auto length = parse_number<std::uint32_t>(seconds);
    if (!length) return fail("the second argument is a number of seconds", seconds);
    if (name.empty() || name.find('\n') != std::string::npos)
        return fail("the first argument is the name of a problem");
    const auto now = system_clock::now();
    auto wanted = known_;
    std::erase_if(wanted, [&](const auto& one) { return one.second <= now || one.first == name; });
    if (*length > 0) wanted[name] = now + std::chrono::seconds(*length);
    std::string text;
    for (const auto& [known, end] : wanted)
        text += fmt::format("{} {}\n", system_clock::to_time_t(end), known);
    if (shared_.acts())
        if (auto written = host::replace_file(file(), text, 0600); !written)
            return std::unexpected(std::move(written.error()));
    known_ = std::move(wanted);
    shared_.log.info(fmt::format("problem {}: acknowledged by user {} for {} s", name, user, *length));
    return status::to_text(known_);
}

} // namespace

void add_acknowledged(Daemon& daemon, const Bus&) { daemon.add(std::make_unique<Acknowledged>(daemon)); }

} // namespace affinityd::behaviours
