// SPDX-License-Identifier: Apache-2.0
#include "behaviours/memory/memory_mover.hpp"
#include "host/root.hpp"
#include "inventory/process_files.hpp"

#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace affinityd::behaviours {
namespace {

class MemoryMoverTest : public testing::Test {
  protected:
    /// Waits for the next move and returns its outcome; fails the test if there is none.
    MemoryMoved await() {
        for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
             std::chrono::steady_clock::now() < end;) {
            auto done = mover_.take_done();
            if (!done.empty()) return done.front();
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        ADD_FAILURE() << "nothing came of the move";
        return {};
    }
    host::Root root_ = *host::Root::open("/");
    TaskId self_ = inventory::read_thread(root_, ::getpid(), ::getpid()).value()->id;
    MemoryMover mover_{root_};
};

TEST_F(MemoryMoverTest, TheKernelIsAsked) {
    // Node 0 is there on every machine; a move onto the node where it is moves nothing.
    mover_.ask({self_, {}, {0}});
    const auto moved = await();
    EXPECT_EQ(moved.code, 0);
    EXPECT_EQ(moved.left, 0);
    EXPECT_EQ(moved.move.process, self_);
}

TEST_F(MemoryMoverTest, ANodeThatIsNotThereIsRefused) {
    mover_.ask({self_, {0}, {1023}});
    EXPECT_NE(await().code, 0);
}

TEST_F(MemoryMoverTest, MemoryIsSpreadOverNodesThatAreThere) {
    const std::vector<char> memory(8U << 20, 1);      // so that each node has a part, wherever the rest lies
    asm volatile("" ::"r"(memory.data()) : "memory"); // it is used
    mover_.ask({self_, {}, {0}, true});
    EXPECT_EQ(await().code, 0);
    mover_.ask({self_, {}, {0, 1023}, true});
    EXPECT_NE(await().code, 0);
}

TEST_F(MemoryMoverTest, AnotherProcessOfTheSameNumberIsLeftAlone) {
    mover_.ask({{self_.tid, self_.start_time + 1}, {}, {0}});
    EXPECT_EQ(await().code, ESRCH);
}

TEST_F(MemoryMoverTest, EndsWhileMovesWait) {
    for (int i = 0; i < 50; ++i)
        mover_.ask({{self_.tid, self_.start_time + static_cast<std::uint64_t>(i)}, {}, {0}});
}

TEST_F(MemoryMoverTest, TheEndWaitsForNoCallThatDoesNotComeBack) {
    auto gate = std::make_shared<std::promise<void>>();
    auto entered = std::make_shared<std::promise<void>>();
    const auto shut = gate->get_future().share();
    {
        MemoryMover mover(root_,
                          [shut, gate, entered](int, const auto&, const auto&) -> std::expected<long, int> {
                              entered->set_value();
                              shut.wait();
                              return 0;
                          });
        mover.ask({self_, {}, {0}});
        entered->get_future().wait();
    } // would never end
    gate->set_value();
}

} // namespace
} // namespace affinityd::behaviours
