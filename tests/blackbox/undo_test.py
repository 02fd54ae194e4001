# SPDX-License-Identifier: Apache-2.0
"""Undo: each task gets back the CPUs that it had before the first policy touched it, however the daemon ends. Two tables: one of worlds
times ends, one of single stories."""
import contextlib
import os
import random
import signal
import time

from house import House, allowed, comm, cpus, policy, report, set_mask, threads, wait_for

ALL = ",".join(map(str, sorted(os.sched_getaffinity(0))))

# Masks that the program begins with, and that its policy gives it. Each has the original mask in common with its threads and children.
WORLDS = {
    "a wide program on one CPU": (None, {"cpus": "1", "bind": "set"}, "1"),
    "a narrow program on another CPU": ("0", {"cpus": "1", "bind": "set"}, "1"),
    "a narrow program on all CPUs": ("0", {"spread": "cpu", "bind": "set"}, ALL),
}


def stop(house):
    house.affinityd.stop()


def kill_start_stop(house):
    house.affinityd.kill()
    house.affinityd.start()
    house.affinityd.stop()


def kill_twice(house):
    for _ in range(2):
        house.affinityd.kill()
        house.affinityd.start()
    house.affinityd.stop()


def kill_orphan_start_stop(house):
    """The parent ends while no daemon runs: no record explains its children any more but by their control group or session."""
    house.affinityd.kill()
    house.parent.process.kill()
    house.parent.process.wait()
    del house.tasks["main"], house.tasks["thread"]
    house.affinityd.start()
    house.affinityd.stop()


def remove_policy(house):
    house.affinityd.remove("web")


def release(house):
    house.affinityd.ctl("release", "web")


ENDS = {"stop": stop, "kill -9, start, stop": kill_start_stop, "two kills, stop": kill_twice, "kill -9, parent ends, start, stop": kill_orphan_start_stop,
        "policy removed": remove_policy, "release": release}


class Table(House):
    def test_each_task_has_its_own_mask_after_each_end(self):
        for world, (first, keys, given) in WORLDS.items():
            for name, end in ENDS.items():
                with self.subTest(world=world, end=name):
                    self.fresh()
                    self.affinityd = self.daemon(web=policy("web", **keys))
                    self.parent = self.program("web", first_mask=first)
                    original = first or ALL
                    self.expect(self.parent, given)
                    self.tasks = {"main": (self.parent.pid, None), "thread": (self.parent.pid, self.parent.thread()),
                                  "child": (self.parent.fork(), None), "child of no policy": (self.parent.spawn("/bin/sleep", "600"), None)}
                    for task in ("main", "thread", "child"):
                        self.expect(self.tasks[task][0], given, self.tasks[task][1])
                    self.expect(self.tasks["child of no policy"][0], original)
                    end(self)
                    for task, (pid, tid) in self.tasks.items():
                        with self.subTest(task=task):
                            self.expect(pid, original, tid)


class Stories(House):
    def test_a_program_that_is_kept_keeps_the_mask(self):
        affinityd = self.daemon(web=policy("web", cpus="1", bind="set", on_stop="keep"))
        web = self.program("web")
        self.expect(web, "1")
        affinityd.stop()
        self.at(web, "1")

    def test_a_mask_that_another_program_set_stays(self):
        affinityd = self.daemon(web=policy("web", cpus="1", bind="set", drift="once"))
        web = self.program("web")
        self.expect(web, "1")
        set_mask(web.pid, "0")
        affinityd.stop()
        self.at(web, "0")

    def test_a_mask_that_an_administrator_gave_between_two_runs_is_the_one_of_before(self):
        affinityd = self.daemon(web=policy("web", cpus=ALL, bind="set"), start=False)
        web = self.program("web", first_mask="1")
        for mask in ("1", ALL):
            set_mask(web.pid, mask)
            affinityd.start()
            self.expect(web, ALL)
            affinityd.stop()
            self.at(web, mask)

    def test_a_worker_that_ends_while_no_daemon_runs_leaves_the_main_thread_its_own_mask(self):
        affinityd = self.daemon(web=policy("web", cpus="0", bind="set"), start=False)
        web = self.program("web", first_mask="0")
        worker = web.thread()
        web.mask(ALL, worker)
        affinityd.start()
        self.expect(web, "0", worker)
        affinityd.kill()
        web.tell("end", worker)
        wait_for(lambda: worker not in threads(web.pid), "the worker has ended")
        affinityd.start()
        affinityd.stop()
        self.at(web, "0")

    def test_a_mask_that_the_program_chose_before_its_parent_was_placed_stays(self):
        affinityd = self.daemon(web=policy("web", spread="cpu", bind="set"), start=False)
        web = self.program("web", first_mask="0")
        child = web.spawn("/bin/sleep", "600")
        set_mask(child, ALL)
        time.sleep(0.05)  # starts are known to a hundredth of a second
        affinityd.start()
        self.expect(web, ALL)
        affinityd.stop()
        self.at(web, "0")
        self.at(child, ALL)


# Per row: programs with the CPUs they begin with, the keys that their policy may have from one start to the next, whether parents end
# while no daemon runs, and which part of the masks may be wrong: where the one kind is given the masks that the other had before, nothing
# but the end of a parent tells whose child an orphan is.
WIDE = ("web", None, ({"cpus": "1"}, {"cpus": "0"}, {"spread": "cpu"}))
NARROW = ("all", "0", ({"spread": "cpu"}, {"cpus": "1"}, {"cpus": "0"}))
CHAOS = {"policies that stay": ([("web", None, WIDE[2][:1]), ("all", "0", NARROW[2][:1])], True, 0),
         "policies that change": ([WIDE, NARROW], False, 0),
         "policies that change, and parents that end": ([WIDE], True, 0),
         "policies that change, masks of all CPUs, and parents that end": ([NARROW], True, 0),
         "policies that change, both kinds, and parents that end": ([WIDE, NARROW], True, 0.05)}


class Chaos(House):
    LONG = True
    KILLS = int(os.environ.get("AFFINITYD_KILLS", "15"))
    LONGEST = 800 + 20 * KILLS

    def test_kills_at_random_moments_leave_no_wrong_mask(self):
        """Programs begin, have children and end, some while no daemon runs, and the daemon is killed at any moment; then it runs once more and
        stops. AFFINITYD_KILLS: how many kills a row, 300 in the long form; AFFINITYD_SEED: of the dice."""
        seed = int(os.environ.get("AFFINITYD_SEED", random.randrange(10**6)))
        for row, (programs, do_parents_end, part) in CHAOS.items():
            with self.subTest(row, seed=seed):
                self.fresh()
                looked, wrong = self.kill_and_look(random.Random(f"{seed} {row}"), programs, do_parents_end)
                report(f"wrong masks after {self.KILLS} kills, {row}: {len(wrong)} of {looked}")
                self.assertLessEqual(len(wrong), max(3, 2 * looked * part) if part else 0, wrong)  # of few masks, chance makes some too large a part

    def kill_and_look(self, dice, programs, do_parents_end):
        affinityd = self.daemon(start=False)

        def begin():
            for stem, _, choices in programs:
                affinityd.write(stem, policy(stem, bind="set", **dice.choice(choices)))
            affinityd.start(is_ready=False)

        def have_children():
            for program in list(own):
                if dice.random() < 0.3:
                    dice.choice((program.thread, program.fork, lambda program=program: program.spawn("/bin/sleep", "600")))()

        begin()
        own, orphans = {}, {}
        for _ in range(self.KILLS):
            if dice.random() < 0.5:
                affinityd.await_ready()
                for stem, first, _ in programs:
                    own[self.program(stem, first_mask=first)] = first or ALL
                have_children()
                time.sleep(dice.random() * 0.05)
            elif own:
                self.begins_to_place(dice.choice(list(own)).pid, affinityd)
            affinityd.kill()
            have_children()
            if do_parents_end and own and (dice.random() < 0.2 or len(own) > 60):
                parent = dice.choice(list(own))
                parent.process.kill()
                parent.process.wait()
                orphans |= dict.fromkeys(parent.born, own.pop(parent))
            while len(own) > 60:
                oldest = next(iter(own))
                del own[oldest]
                oldest.end()
                oldest.end_born()
            while len(orphans) > 100:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(orphans.popitem()[0], signal.SIGKILL)
            begin()
        affinityd.await_ready()
        affinityd.stop()
        left = orphans | {pid: original for program, original in own.items() for pid in (program.pid, *program.born)}
        looked, wrong = 0, []
        for pid, original in left.items():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                for tid in os.listdir(f"/proc/{pid}/task"):
                    looked += 1
                    if cpus(allowed(pid, tid)) != cpus(original):
                        wrong.append((comm(pid, tid), pid, tid, allowed(pid, tid), original, "orphan" if pid in orphans else ""))
        return looked, wrong

    def begins_to_place(self, pid, affinityd):
        """Until the first pass after a start has come to that program, or is over."""
        before = allowed(pid)
        while allowed(pid) == before and affinityd.readies() == affinityd.before:
            time.sleep(0.0005)
