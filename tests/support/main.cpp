// SPDX-License-Identifier: Apache-2.0
// main() of a room's tests. All test sources of a room are one program, since to compile and link each by
// itself costs five times as much. usage: ROOM-test [SOURCE]... [GoogleTest's options] With names of sources
// (reader_test.cpp), only their tests run; a name without a test is an error.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

namespace {

/// The tests of one source file as GoogleTest's filter lists them: "Suite.Test:", one after the other.
std::string tests_of(const std::string& source) {
    std::string filter;
    const auto& all = *testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
        const auto& suite = *all.GetTestSuite(i);
        for (int j = 0; j < suite.total_test_count(); ++j) {
            const auto& test = *suite.GetTestInfo(j);
            if (std::filesystem::path(test.file()).filename() == source) {
                filter += std::string(suite.name()) + '.' + test.name() + ':';
            }
        }
    }
    return filter;
}

} // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    std::string filter;
    for (int i = 1; i < argc; ++i) {
        const auto tests = tests_of(argv[i]);
        if (tests.empty()) {
            std::cerr << argv[0] << ": no test in " << argv[i] << '\n';
            return EXIT_FAILURE;
        }
        filter += tests;
    }
    if (!filter.empty()) {
        testing::GTEST_FLAG(filter) = filter;
    }
    return RUN_ALL_TESTS();
}
