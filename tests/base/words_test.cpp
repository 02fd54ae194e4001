// SPDX-License-Identifier: Apache-2.0
#include "base/words.hpp"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace affinityd {
namespace {

static_assert(sizeof(Words) == 16, "that is what it is for");

std::vector<std::uint64_t> all(const Words& words) { return {words.begin(), words.end()}; }

TEST(Words, BehaveAsAVector) {
    std::minstd_rand random(7);
    Words words;
    std::vector<std::uint64_t> expected;
    for (int step = 0; step < 20'000; ++step) {
        const std::size_t size = random() % 5;
        switch (random() % 5) {
        case 0:
            words.resize(size);
            expected.resize(size);
            break;
        case 1:
            if (expected.empty()) break;
            words[step % expected.size()] = expected[step % expected.size()] = random();
            break;
        case 2: {
            const Words copy = words;
            words.resize(size);
            words = copy;
            break;
        }
        case 3: {
            Words taken = std::move(words);
            Words other;
            other.resize(size);
            words = std::move(other);
            words = std::move(taken);
            break;
        }
        default: {
            std::vector<std::uint64_t> from(size);
            for (auto& word : from)
                word = random();
            words.assign(from);
            expected = from;
        }
        }
        ASSERT_EQ(all(words), expected) << step;
        ASSERT_EQ(words.size(), expected.size());
    }
}

TEST(Words, AreComparedWordByWord) {
    Words a, b;
    a.assign(std::vector<std::uint64_t>{1, 2});
    b.assign(std::vector<std::uint64_t>{1, 3});
    EXPECT_NE(a, b);
    EXPECT_LT(a, b);
    b.resize(1);
    EXPECT_LT(b, a) << "a shorter one that is equal as far as it goes";
    const Words& same = a;
    a = same;
    EXPECT_EQ(all(a), (std::vector<std::uint64_t>{1, 2}));
}

} // namespace
} // namespace affinityd
