// SPDX-License-Identifier: Apache-2.0
// Virtual interfaces that change their names, or take those of others, while no daemon runs: each gets its
// own originals back.
#include "simulated.hpp"

namespace affinityd::app {
namespace {

using test::Instance;
using test::Machine;

class Namesakes : public testing::Test {
  protected:
    Namesakes() {
        machine_.add_virtual("va", 7);
        machine_.add_virtual("vb", 9);
        set("va", "8");
        set("vb", "2");
        machine_.policy("nic", "affinity: irq\nnics: [\"v*\"]\ncpus: \"0\"\n");
    }
    /// Both files of an interface, which policies set differently.
    void set(const std::string& nic, const std::string& mask) const {
        for (const char* file : files)
            machine_.tree().file("sys/class/net/" + nic + "/queues/" + file, mask + "\n");
    }
    void expect(const std::string& nic, const std::string& mask) const {
        for (const char* file : files)
            EXPECT_EQ(machine_.steering(file, nic), mask) << nic << ' ' << file;
    }
    void remove(const std::string& nic) const {
        std::filesystem::remove(machine_.path("sys/class/net/" + nic));
        std::filesystem::remove_all(machine_.path("sys/devices/virtual/net/" + nic));
    }
    void swap_names() const {
        machine_.rename_virtual("va", "vt");
        machine_.rename_virtual("vb", "va");
        machine_.rename_virtual("vt", "vb");
    }
    /// A daemon that is killed.
    void place_and_die() const {
        Instance daemon(machine_);
        ASSERT_TRUE(daemon.manager().start());
        daemon.pass();
        EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "va"), "1");
    }
    /// Another one comes and goes.
    void place_and_restore() const {
        Instance daemon(machine_);
        ASSERT_TRUE(daemon.manager().start());
        daemon.pass();
        daemon.pass(true);
        daemon.stop();
        EXPECT_EQ(daemon.journal().size(), 0U);
    }
    static constexpr auto files = {"rx-0/rps_cpus", "tx-0/xps_cpus"};
    Machine machine_;
};

TEST_F(Namesakes, WhoSwappedTheirNamesGetTheirOwnOriginals) {
    place_and_die();
    swap_names();
    place_and_restore();
    expect("va", "2");
    expect("vb", "8");
}

TEST_F(Namesakes, WhoSwappedTheirNamesGetTheirOwnOriginalsThoughThePolicyMovesThem) {
    place_and_die();
    swap_names();
    machine_.policy("nic", "affinity: irq\nnics: [\"v*\"]\ncpus: \"2\"\n");
    place_and_restore();
    expect("va", "2");
    expect("vb", "8");
}

TEST_F(Namesakes, WhoSwappedTheirNamesGetTheirOwnOriginalsWhenThePolicyIsGone) {
    place_and_die();
    swap_names();
    std::filesystem::remove_all(machine_.policies());
    machine_.tree().folder("policies");
    place_and_restore();
    expect("va", "2");
    expect("vb", "8");
}

TEST_F(Namesakes, WhoSwappedTheirNamesWhileTheirMasksWereKeptGetTheirOwnOriginals) {
    const std::string policy = "affinity: irq\nnics: [\"v*\"]\ncpus: \"0\"\n";
    machine_.policy("nic", policy + "on_stop: keep\n");
    {
        Instance daemon(machine_);
        ASSERT_TRUE(daemon.manager().start());
        daemon.pass();
        daemon.stop();
    }
    swap_names();
    machine_.policy("nic", policy);
    place_and_restore();
    expect("va", "2");
    expect("vb", "8");
}

TEST_F(Namesakes, WhoHadWhatThePolicyWantsBeforeItTookANameGetsItsOwnOriginal) {
    machine_.policy("nic", "affinity: irq\nnics: [\"v*\"]\ncpus: \"1\"\n"); // as vb is sent from
    {
        Instance killed(machine_);
        ASSERT_TRUE(killed.manager().start());
        killed.pass();
        EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "va"), "2");
    }
    swap_names();
    place_and_restore();
    expect("va", "2");
    expect("vb", "8");
}

TEST_F(Namesakes, WhoWasPutBackGetsItsOwnOriginalThoughItOnceHadThatFromUs) {
    {
        Instance killed(machine_);
        ASSERT_TRUE(killed.manager().start());
        killed.pass();
        for (const char* rest : {"nics: [\"v*\"]\ncpus: \"1\"\n", "nics: [\"v*\"]\ncpus: \"0\"\n",
                                 "nics: [va]\ncpus: \"0\"\n"}) {
            machine_.policy("nic", std::string("affinity: irq\n") + rest);
            ASSERT_TRUE(killed.reload());
            killed.finish();
            killed.pass(true);
        }
        expect("vb", "2");
    }
    swap_names();
    machine_.policy("nic", "affinity: irq\nnics: [\"v*\"]\ncpus: \"1\"\n");
    place_and_restore();
    expect("va", "2");
    expect("vb", "8");
}

TEST_F(Namesakes, ANewOneKeepsAMaskOfItsOwnThatTheOneBeforeHadFromUs) {
    for (const bool is_killed : {false, true}) {
        auto daemon = std::make_unique<Instance>(machine_);
        ASSERT_TRUE(daemon->manager().start());
        daemon->pass();
        EXPECT_EQ(machine_.steering("tx-0/xps_cpus", "va"), "1");
        if (is_killed) daemon.reset();
        machine_.rename_virtual("va", "gone"); // so that the new one's folder has another inode for sure
        machine_.add_virtual("va", is_killed ? 12 : 11);
        remove("gone");
        set("va", "1"); // whoever made it
        if (is_killed) daemon = std::make_unique<Instance>(machine_);
        ASSERT_TRUE(!is_killed || daemon->manager().start());
        daemon->manager().link_changed("va");
        daemon->finish();
        daemon->pass(true);
        daemon->stop();
        expect("va", "1");
        expect("vb", "2");
        set("va", "0");
    }
}

TEST_F(Namesakes, WhoTookTheNameOfOneThatIsGoneGetsItsOwnOriginal) {
    place_and_die();
    remove("vb");
    machine_.rename_virtual("va", "vb");
    place_and_restore();
    expect("vb", "8");
}

TEST_F(Namesakes, ANewOneGetsNothingOfTheOneThatHadItsName) {
    place_and_die();
    remove("va");
    machine_.add_virtual("va", 11);
    place_and_restore();
    expect("va", "0");
    expect("vb", "2");
}

TEST_F(Namesakes, ANewOneGetsNothingOfTheOneThatHadItsNameAndIsElsewhereInTheMeantime) {
    place_and_die();
    machine_.rename_virtual("va", "vc");
    machine_.add_virtual("va", 11);
    place_and_restore();
    expect("va", "0");
    expect("vb", "2");
    expect("vc", "8");
}

} // namespace
} // namespace affinityd::app
