// SPDX-License-Identifier: Apache-2.0
#include "events/watches.hpp"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace affinityd::events {
namespace {

using namespace std::string_literals;

TEST(CpuUevent, IsRecognizedAmongOthersAndAnyBytes) {
    const std::pair<std::string, bool> cases[] = {
        {"online@/devices/system/cpu/cpu3\0ACTION=online\0SUBSYSTEM=cpu\0SEQNUM=1\0"s, true},
        {"add@/devices/x\0SUBSYSTEM=cpuid\0"s, false},
        {"add@/devices/x\0XSUBSYSTEM=cpu\0"s, false},
        {"SUBSYSTEM=cpu\0"s, false},
        {"a\0SUBSYSTEM=cpu"s, false},
        {"\0SUBSYSTEM=cpu\0"s, true},
        {"", false},
        {"\0\0\0"s, false},
    };
    for (const auto& [message, expected] : cases)
        EXPECT_EQ(is_cpu_uevent(message), expected) << message;
}

} // namespace
} // namespace affinityd::events
