// SPDX-License-Identifier: Apache-2.0
// `affinityctl check` as its users see it: output and exit codes.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace {

namespace fs = std::filesystem;

struct Answer {
    int code = -1;
    std::string text;
};

class Check : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "affinityd-verb-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        top_ = name;
        // A recorded machine of two CPUs without processes.
        for (const auto* cpu : {"cpu0", "cpu1"})
            fs::create_directories(top_ / "machine/sys/devices/system/cpu" / cpu / "topology");
        for (const auto* file : {"online", "present", "possible"})
            (void)write(std::string("machine/sys/devices/system/cpu/") + file, "0-1\n");
        fs::create_directories(top_ / "machine/proc");
    }
    void TearDown() override { fs::remove_all(top_); }

    [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
        fs::create_directories((top_ / name).parent_path());
        std::ofstream(top_ / name) << text;
        return (top_ / name).string();
    }

    [[nodiscard]] Answer run(const std::string& arguments) const {
        const char* program = std::getenv("AFFINITYCTL");
        const std::string command = std::string(program == nullptr ? "affinityctl" : program) + " --root " +
                                    (top_ / "machine").string() + " check " + arguments + " 2>&1";
        Answer answer;
        FILE* pipe = ::popen(command.c_str(), "r");
        if (pipe == nullptr) return answer;
        char buffer[4096];
        for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
            answer.text.append(buffer, got);
        const int status = ::pclose(pipe);
        answer.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        return answer;
    }

    fs::path top_;
};

const std::string good =
    "version: 1\nmatch: {comm: redis-server, user: redis}\naffinity: process\ncpus: \"1\"\nbind: set\n";

TEST_F(Check, GoodFileExitsWithZero) {
    const auto answer = run(write("redis.yaml", good));
    EXPECT_EQ(answer.code, 0) << answer.text;
    EXPECT_EQ(answer.text, "0 errors, 0 warnings, 0 notes; 1 policy without errors\n");
}

TEST_F(Check, ConditionsThatAnyUserCanMeetAreNotedAndWarnedOf) {
    const auto path = write("redis.yaml", "version: 1\nmatch: {comm: redis-server}\ncpus: \"1\"\n");
    const auto note = run(path);
    EXPECT_EQ(note.code, 0);
    EXPECT_EQ(note.text.substr(0, note.text.find('\n')),
              path + ":2:1: note: any user can start a process that meets these conditions (add 'user', or a "
                     "'unit' that root starts)");
    const auto full = write("full.yaml", "version: 1\nmatch: {comm: redis-server}\naffinity: full\n");
    EXPECT_NE(run(full).text.find("full.yaml:2:1: warning: any user can start"), std::string::npos);
    EXPECT_EQ(run("--strict " + full).code, 3);
}

TEST_F(Check, ExclusiveIsSaidToBeNoFence) {
    const auto answer =
        run(write("redis.yaml", "version: 1\nmatch: {user: redis}\ncpus: \"1\"\nexclusive: true\n"));
    EXPECT_EQ(answer.code, 0);
    EXPECT_NE(answer.text.find("note: 'exclusive' is no fence"), std::string::npos) << answer.text;
}

TEST_F(Check, APolicyThatRestrictsNothingHereIsNoted) {
    const auto answer = run(write("redis.yaml", "version: 1\nmatch: {user: redis}\ncpus: all\nbind: set\n"));
    EXPECT_EQ(answer.code, 0);
    EXPECT_NE(answer.text.find("note: it restricts nothing on this machine"), std::string::npos)
        << answer.text;
}

TEST_F(Check, FaultIsUnderlined) {
    const auto path = write("redis.yaml", "version: 1\nmatch: {comm: redis-server}\ncpu: \"1\"\n");
    const auto answer = run(path);
    EXPECT_EQ(answer.code, 3);
    EXPECT_EQ(answer.text,
              path + ":3:1: error: unknown key 'cpu' (did you mean 'cpus'?)\n    cpu: \"1\"\n    ^^^\n"
                     "1 error, 0 warnings, 0 notes; 0 policies without errors\n");
}

TEST_F(Check, NothingThatATerminalWouldActUponIsPrinted) {
    const std::string evil = "\x1b[2J\u202e\u009b\xff";
    (void)write("vendor/redis" + evil + "/redis.yaml", good);
    (void)write("etc/" + evil + ".yaml", good);
    (void)write("etc/redis.yaml", "");
    const auto line = write("line.yaml", "version: 1\nmatch: {comm: a" + evil + "}\n");
    const auto quoted = [&](const std::string& path) { return "'" + (top_ / path).string() + "' "; };
    for (const auto& paths : {quoted("vendor/redis" + evil) + quoted("etc"), line}) {
        const auto answer = run(paths);
        EXPECT_NE(answer.code, -1);
        EXPECT_NE(answer.text.find("\\x1b[2J\\u202e\\u009b\\xff"), std::string::npos) << answer.text;
        for (const auto* raw : {"\x1b", "\u202e", "\u009b", "\xff"})
            EXPECT_EQ(answer.text.find(raw), std::string::npos) << answer.text;
    }
}

TEST_F(Check, CpusAreCheckedOnTheMachine) {
    const auto path = write("redis.yaml", "version: 1\nmatch: {user: a}\ncpus: 1-2\n");
    const auto answer = run(path);
    EXPECT_EQ(answer.code, 3);
    EXPECT_EQ(answer.text.substr(0, answer.text.find('\n')),
              path + ":3:7: error: CPU 2 does not exist on this machine (it has 0-1)");
}

TEST_F(Check, StrictMakesWarningsErrors) {
    const auto path = write("redis.yaml", "match: {comm: a}\n");
    EXPECT_EQ(run(path).code, 0);
    EXPECT_EQ(run("--strict " + path).code, 3);
}

TEST_F(Check, FoldersOverrideButListedFilesDoNot) {
    (void)write("vendor/redis.yaml", good);
    (void)write("etc/redis.yaml", "");
    const auto folders = run((top_ / "vendor").string() + " " + (top_ / "etc").string());
    EXPECT_EQ(folders.code, 0) << folders.text;
    EXPECT_NE(folders.text.find("etc/redis.yaml: masks "), std::string::npos) << folders.text;
    const auto one = write("a/redis.yaml", good);
    const auto other = write("b/redis.yaml", good);
    const auto files = run(one + " " + other);
    EXPECT_EQ(files.code, 3);
    EXPECT_NE(files.text.find(other + ":1:1: error: a policy of this name is in " + one + " too"),
              std::string::npos)
        << files.text;
}

TEST_F(Check, Json) {
    const auto answer = run("--json " + write("redis.yaml", "version: 1\nmatch: {comm: a}\nbind: wide\n"));
    EXPECT_EQ(answer.code, 3);
    const auto document = nlohmann::json::parse(answer.text, nullptr, false);
    ASSERT_TRUE(document.is_object()) << answer.text;
    EXPECT_EQ(document.at("ok"), false);
    EXPECT_EQ(document.at("errors"), 1);
    ASSERT_EQ(document.at("diagnostics").size(), 1U);
    EXPECT_EQ(document.at("diagnostics")[0].at("line"), 3);
    EXPECT_EQ(document.at("diagnostics")[0].at("column"), 7);
}

TEST_F(Check, MissingFileOrMachineIsAFailure) {
    const auto answer = run((top_ / "nothing.yaml").string());
    EXPECT_EQ(answer.code, 1);
    EXPECT_NE(answer.text.find("nothing.yaml: there is no such file or folder"), std::string::npos)
        << answer.text;
}

} // namespace
