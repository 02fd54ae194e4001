// SPDX-License-Identifier: Apache-2.0
// Notices of the rooms below reach the log with the weight that they have.
#include "app/message_ids.hpp"
#include "app/notices.hpp"
#include "simulated.hpp"

#include <fstream>

namespace affinityd::app {
namespace {

TEST(MessageIds, AreExplainedInTheCatalog) {
    std::ifstream file(CATALOG);
    const std::string catalog((std::istreambuf_iterator<char>(file)), {});
    for (const std::string id : {regression_message, faulty_files_message, reload_refused_message,
                                 placed_message, drift_message, history_damaged_message}) {
        EXPECT_EQ(id.size(), 32U);
        EXPECT_NE(catalog.find("-- " + id + "\nSubject: "), std::string::npos) << id;
    }
}

TEST(Notices, EachKindIsLogged) {
    ::unsetenv("JOURNAL_STREAM"); // what is said must come to the test's sink
    test::ReadableLog log;
    using Kind = accounting::Notice::Kind;
    for (const auto kind : {Kind::measured, Kind::regression, Kind::not_kept, Kind::history_unusable,
                            Kind::history_set_aside, Kind::history_unreadable})
        log_notices(log.log(),
                    std::vector{accounting::Notice{kind, "kind " + std::to_string(static_cast<int>(kind))}});
    EXPECT_EQ(log.times("kind "), 6U);
    log_notices(log.log(), std::vector{coexist::Notice{coexist::Notice::Kind::other_writer, "a writer"},
                                       coexist::Notice{coexist::Notice::Kind::list_not_returned, "a list"}});
    EXPECT_EQ(log.times("a writer"), 1U);
    EXPECT_EQ(log.times("a list"), 1U);
}

} // namespace
} // namespace affinityd::app
