// SPDX-License-Identifier: Apache-2.0
#include "steer/lanes.hpp"
#include "steer/reads.hpp"

#include <gtest/gtest.h>

namespace affinityd::steer {

TEST(NoBpf, SaysWhyNothingIsCounted) {
    const auto reads = Reads::open(*host::Root::open(), {});
    ASSERT_FALSE(reads);
    EXPECT_EQ(reads.error().to_string(), "this program is built without BPF");
}

} // namespace affinityd::steer
