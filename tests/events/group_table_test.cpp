// SPDX-License-Identifier: Apache-2.0
#include "events/group_table.hpp"

#include <gtest/gtest.h>

namespace affinityd::events {
namespace {

constexpr uid_t user = 1000;

void fill(GroupTable& table, uid_t owner, std::size_t groups) {
    for (std::size_t i = 0; i < groups && table.has_room(owner); ++i)
        table.add(static_cast<int>(table.size()), std::to_string(table.size()), owner);
}

TEST(GroupTable, OneUserAndAllUsersHaveTheirShareAndRootHasTheRest) {
    GroupTable table;
    fill(table, user, GroupTable::most);
    EXPECT_EQ(table.size(), GroupTable::most_of_one_user);
    for (uid_t other = user + 1; table.has_room(other); ++other)
        fill(table, other, GroupTable::most);
    EXPECT_EQ(table.size(), GroupTable::most_of_users);
    EXPECT_TRUE(table.has_room(0));
    fill(table, 0, GroupTable::most);
    EXPECT_EQ(table.size(), GroupTable::most);
    EXPECT_FALSE(table.has_room(0));
}

TEST(GroupTable, AGroupThatGoesMakesRoomForItsOwner) {
    GroupTable table;
    fill(table, user, GroupTable::most);
    EXPECT_EQ(table.erase("7"), 7);
    EXPECT_EQ(table.erase("7"), std::nullopt);
    EXPECT_TRUE(table.has_room(user));
    table.add(7, "again", user);
    EXPECT_FALSE(table.has_room(user));
    table.erase_watch(7);
    EXPECT_EQ(table.path_of(7), nullptr);
    EXPECT_TRUE(table.has_room(user));
}

TEST(GroupTable, AWatchOrPathThatComesAgainTakesThePlaceOfTheOld) {
    GroupTable table;
    table.add(1, "a", user);
    table.add(2, "a", 0);
    EXPECT_EQ(table.size(), 1U);
    EXPECT_EQ(table.watch_of("a"), 2);
    table.add(2, "b", 0);
    EXPECT_EQ(table.watch_of("a"), std::nullopt);
    EXPECT_EQ(*table.path_of(2), "b");
    EXPECT_EQ(table.paths(), std::vector<std::string>{"b"});
}

} // namespace
} // namespace affinityd::events
