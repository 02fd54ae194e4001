// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/unit_properties.hpp"

#include <cerrno>
#include <deque>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace affinityd::app::test {

/// Answers at once, or keeps its answers until the test gives them.
class SimulatedSystemd final : public enforcer::UnitProperties {
  public:
    void read(const std::string& unit, Read done) override;
    void write(const std::string& unit, const CpuSet& cpus, Written done) override;
    /// Gives all answers that are kept, those to the calls which follow from them, too. `code`: instead of
    /// the answer.
    void answer(int code = 0);

    std::map<std::string, CpuSet> units;
    std::set<std::string> missing; ///< units that are not loaded
    std::map<std::string, int> under_way;
    std::function<void(const std::string&)> on_write;
    std::deque<std::move_only_function<void(int)>> kept;
    bool is_slow = false;
    int refusal = 0; ///< of writes
    unsigned reads = 0, writes = 0;

  private:
    void begin(const std::string& unit);
    void reply(std::move_only_function<void(int)> give);
};

} // namespace affinityd::app::test
