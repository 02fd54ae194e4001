// SPDX-License-Identifier: Apache-2.0
// Main threads that end before others, and threads that run another program: these take over the number and
// the start time of the main thread, and keep their own mask.
#include "simulated.hpp"

#include <fstream>
#include <functional>
#include <memory>
#include <sstream>

namespace affinityd::app {
namespace {

using test::Instance;

class ThreadExec : public testing::Test {
  protected:
    ThreadExec() {
        machine_.policy("server", "match: {comm: server}\nspread: cpu\nbind: cpu\nsettle: 0\n");
        machine_.process(10, "server");
        machine_.thread(10, 11, "worker", "0-3", 1, 0, 111);
    }
    /// It waits for the others to end.
    void end_main_thread() const {
        for (const char* file : {"proc/10/stat", "proc/10/task/10/stat"}) {
            auto text = machine_.all_of(file);
            text.replace(text.find(") S "), 4, ") Z ");
            machine_.tree().file(file, text);
        }
    }
    /// Thread 11 runs a program of this name.
    void exec(const std::string& comm) const {
        const auto mask = machine_.allowed(10, 11);
        machine_.end_thread(10, 11);
        machine_.process(10, comm, mask);
    }
    static void tell_exec(Instance& instance) {
        instance.tasks().process_changed(10, {.is_executed = true});
        instance.finish();
    }
    /// A daemon that has placed both threads.
    [[nodiscard]] std::unique_ptr<Instance> placed() {
        auto instance = std::make_unique<Instance>(machine_);
        EXPECT_TRUE(instance->manager().start());
        instance->pass();
        EXPECT_NE(machine_.allowed(10, 10), "0-3");
        EXPECT_NE(machine_.allowed(10, 11), "0-3");
        EXPECT_NE(machine_.allowed(10, 10), machine_.allowed(10, 11));
        return instance;
    }
    test::Machine machine_;
};

TEST_F(ThreadExec, ItsOriginalComesBackAtTheEnd) {
    for (const bool is_late : {false, true}) { // the daemon handles both events after the exec
        machine_.process(10, "server");
        machine_.thread(10, 11, "worker", "0-3", 1, 0, 111);
        const auto instance = placed();
        end_main_thread();
        if (is_late) exec("server");
        instance->tasks().task_gone(10, 10);
        if (!is_late) exec("server");
        tell_exec(*instance);
        EXPECT_NE(machine_.allowed(10, 10), "0-3");
        EXPECT_EQ(instance->journal().size(), 1U);
        instance->stop();
        EXPECT_EQ(machine_.allowed(10, 10), "0-3") << is_late;
    }
}

TEST_F(ThreadExec, ItsOriginalComesBackIfNoPolicyWantsTheProgram) {
    for (const bool is_told : {true, false}) { // of the main thread's end
        machine_.process(10, "server");
        machine_.thread(10, 11, "worker", "0-3", 1, 0, 111);
        const auto instance = placed();
        end_main_thread();
        if (is_told) instance->tasks().task_gone(10, 10);
        exec("other");
        tell_exec(*instance);
        EXPECT_EQ(machine_.allowed(10, 10), "0-3") << is_told;
        EXPECT_FALSE(instance->knows(10));
        instance->stop();
    }
}

TEST_F(ThreadExec, TheOriginalIsTheThreadsOwn) {
    machine_.process(10, "server", "0-3");
    machine_.thread(10, 11, "worker", "1-2", 1, 0, 111);
    const auto instance = placed();
    end_main_thread();
    instance->tasks().task_gone(10, 10);
    exec("server");
    tell_exec(*instance);
    instance->stop();
    EXPECT_EQ(machine_.allowed(10, 10), "1-2");
}

TEST_F(ThreadExec, APassInBetweenForgetsNothing) {
    const auto instance = placed();
    end_main_thread();
    instance->tasks().task_gone(10, 10);
    instance->pass();
    exec("other");
    tell_exec(*instance);
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
}

TEST_F(ThreadExec, TheNextDaemonFindsItsRecord) {
    auto instance = placed();
    end_main_thread();
    instance->tasks().task_gone(10, 10);
    exec("other");
    instance.reset(); // killed before the event came
    instance = std::make_unique<Instance>(machine_);
    ASSERT_TRUE(instance->manager().start());
    instance->pass();
    EXPECT_EQ(machine_.allowed(10, 10), "0-3");
}

TEST_F(ThreadExec, AProcessThatLosesItsMainThreadIsKnownUntilItsLastOneEnds) {
    const auto instance = placed();
    end_main_thread();
    instance->tasks().task_gone(10, 10);
    EXPECT_TRUE(instance->knows(10));
    EXPECT_EQ(instance->journal().size(), 2U);
    machine_.end(10);
    instance->tasks().task_gone(10, 11);
    EXPECT_FALSE(instance->knows(10));
    EXPECT_EQ(instance->journal().size(), 0U);
}

TEST_F(ThreadExec, AProcessThatLosesItsMainThreadIsLookedAtWhenItHasSettled) {
    const auto instance = placed();
    auto& later = instance->tasks().events().later();
    later.look_at(10, 0, LaterLooks::Clock::now() + std::chrono::seconds(1));
    end_main_thread();
    instance->tasks().task_gone(10, 10);
    EXPECT_EQ(later.size(), 1U);
    machine_.end(10);
    instance->tasks().task_gone(10, 11);
    EXPECT_EQ(later.size(), 0U) << "but not after its end";
}

/// Thread 11 creates one that runs another program at once, so that the daemon hears of its birth too late,
/// and of the end of thread 11 before it hears of the program.
class NeverSeen : public ThreadExec {
  protected:
    void exec_of_another(Instance& instance, const std::string& comm) const {
        const auto mask = machine_.allowed(10, 11);
        exec(comm);
        ASSERT_EQ(machine_.allowed(10, 10), mask);
        instance.tasks().thread_changed(10, 12);
        instance.tasks().task_gone(10, 11);
        instance.tasks().task_gone(10, 10);
        tell_exec(instance);
    }
};

TEST_F(NeverSeen, ItsOriginalIsThatOfItsCreator) {
    for (const std::string drift : {"enforce", "yield"})
        for (const std::string comm : {"server", "other"}) {
            machine_.policy(
                "server", "match: {comm: server}\nspread: cpu\nbind: cpu\nsettle: 0\ndrift: " + drift + "\n");
            machine_.policy("unrelated", "match: {comm: unrelated}\n");
            machine_.process(10, "server");
            machine_.thread(10, 11, "worker", "1-3", 1, 0, 111);
            const auto instance = placed();
            exec_of_another(*instance, comm);
            EXPECT_TRUE(comm == "server" || machine_.allowed(10, 10) == "1-3") << machine_.allowed(10, 10);
            instance->stop();
            EXPECT_EQ(machine_.allowed(10, 10), "1-3") << drift << ' ' << comm;
        }
}

TEST_F(NeverSeen, TheMaskOfAnotherThreadThatSomebodySetsIsNotTakenForIt) {
    const auto instance = placed();
    const auto mask = machine_.allowed(10, 11);
    machine_.process(10, "server", mask);
    std::filesystem::remove(machine_.path("policies/server.yaml"));
    machine_.policy("unrelated", "match: {comm: unrelated}\n");
    ASSERT_TRUE(instance->reload());
    instance->pass();
    instance->stop();
    EXPECT_EQ(machine_.allowed(10, 10), mask);
}

/// A thread is born, and before the daemon has given it its place, it runs another program or ends.
class WhileItIsPlaced : public ThreadExec {
  protected:
    static machine::TaskMask newcomer() { return {{12, 112}, 10, {}}; }
    /// `then`: right after the mask was set.
    void be_born(Instance& instance, const std::function<void(const std::string&)>& then) const {
        machine_.thread(10, 12, "worker", machine_.allowed(10, 10), 1, 0, 112);
        instance.enforcer().before_apply = [&] {
            const auto record = instance.journal().find(newcomer());
            ASSERT_TRUE(record);
            machine_.end_thread(10, 12);
            then(record->asked.to_string());
        };
        instance.tasks().thread_changed(10, 12);
        instance.enforcer().before_apply = {};
        EXPECT_EQ(machine_.allowed(10, 12), "");
    }
};

TEST_F(WhileItIsPlaced, TheOriginalOfAThreadThatRunsAProgramComesBack) {
    for (const std::string comm : {"server", "other"}) {
        machine_.process(10, "server");
        machine_.thread(10, 11, "worker", "0-3", 1, 0, 111);
        const auto instance = placed();
        be_born(*instance, [&](const std::string& mask) {
            EXPECT_NE(mask, machine_.allowed(10, 10));
            EXPECT_NE(mask, machine_.allowed(10, 11));
            machine_.end_thread(10, 11);
            machine_.process(10, comm, mask);
        });
        instance->tasks().task_gone(10, 11);
        instance->tasks().task_gone(10, 10);
        tell_exec(*instance);
        EXPECT_TRUE(comm == "server" || machine_.allowed(10, 10) == "0-3");
        instance->stop();
        EXPECT_EQ(machine_.allowed(10, 10), "0-3") << comm;
        EXPECT_EQ(instance->journal().size(), 0U);
    }
}

TEST_F(WhileItIsPlaced, OfAThreadThatEndsNothingIsLeft) {
    for (const bool is_told : {true, false}) {
        machine_.process(10, "server");
        machine_.thread(10, 11, "worker", "0-3", 1, 0, 111);
        const auto instance = placed();
        be_born(*instance, [](const std::string&) {});
        if (is_told)
            instance->tasks().task_gone(10, 12);
        else
            instance->pass();
        EXPECT_FALSE(instance->journal().contains(newcomer())) << is_told;
        EXPECT_EQ(instance->journal().size(), 2U);
        instance->stop();
    }
}

TEST_F(WhileItIsPlaced, OfAThreadOfAProcessThatEndsAsWellNothingIsLeft) {
    const auto instance = placed();
    be_born(*instance, [&](const std::string&) { machine_.end(10); });
    instance->pass();
    instance->pass();
    EXPECT_EQ(instance->journal().size(), 0U);
}

} // namespace
} // namespace affinityd::app
