// SPDX-License-Identifier: Apache-2.0
#include "simulated_systemd.hpp"

#include <gtest/gtest.h>

namespace affinityd::app::test {

void SimulatedSystemd::read(const std::string& unit, Read done) {
    begin(unit);
    ++reads;
    reply([this, unit, to = std::move(done)](int code) mutable {
        --under_way[unit];
        if (code != 0) return to(std::unexpected(code));
        to(units[unit]);
    });
}

void SimulatedSystemd::write(const std::string& unit, const CpuSet& cpus, Written done) {
    begin(unit);
    ++writes;
    if (on_write) on_write(unit);
    reply([this, unit, cpus, to = std::move(done)](int code) mutable {
        --under_way[unit];
        if (code == 0) code = missing.contains(unit) ? ENOENT : refusal;
        if (code == 0) units[unit] = cpus;
        to(code);
    });
}

void SimulatedSystemd::answer(int code) {
    while (!kept.empty()) {
        auto give = std::move(kept.front());
        kept.pop_front();
        give(code);
    }
}

void SimulatedSystemd::begin(const std::string& unit) {
    EXPECT_EQ(++under_way[unit], 1) << "one call for a unit at a time";
}

void SimulatedSystemd::reply(std::move_only_function<void(int)> give) {
    if (is_slow)
        kept.push_back(std::move(give));
    else
        give(0);
}

} // namespace affinityd::app::test
