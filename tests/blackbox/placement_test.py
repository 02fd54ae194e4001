# SPDX-License-Identifier: Apache-2.0
"""Tasks of one policy are spread over its slots first; what others do comes second."""
from house import House, allowed, policy, wait_for

OTHER = policy("other", cpus="0-1", spread="core", bind="core", settle=0)
WEB = policy("web", cpus="0-1", spread="core", bind="core", settle=0)


class Spread(House):
    def others(self, count, cpu):
        """Idle tasks of another policy, all on one CPU."""
        for _ in range(count):
            self.expect(self.program("other", "/bin/sleep", "600"), cpu)

    def test_two_tasks_get_two_cores_although_others_are_on_one(self):
        self.daemon(other=OTHER | {"cpus": "1"}, web=WEB)
        self.others(3, "1")
        one, two = self.program("web", "/bin/sleep", "600"), self.program("web", "/bin/sleep", "600")
        self.expect(one, "0")
        self.expect(two, "1")

    def test_workers_get_a_core_each_wherever_their_master_is(self):
        self.daemon(other=OTHER | {"cpus": "0"}, web=WEB)
        self.others(2, "0")
        master = self.program("web")
        self.expect(master, "1")
        workers = []
        for _ in range(2):
            workers.append(master.fork())
            wait_for(lambda: allowed(workers[-1]) in ("0", "1"), "a worker has a core")
        wait_for(lambda: {allowed(worker) for worker in workers} == {"0", "1"},
                 lambda: f"two workers have two cores: {[allowed(worker) for worker in workers]}")

    def test_two_busy_programs_whose_policies_are_narrowed_get_a_core_each_at_once(self):
        wide = {name: policy(name, cpus="0-1", settle=0) for name in ("one", "two")}
        daemon = self.daemon(**wide)
        programs = [self.program(name) for name in wide]
        for program in programs:
            self.expect(program, "0-1")
            program.busy(program.thread("spinner"))
        for name, keys in wide.items():
            daemon.write(name, keys | {"bind": "core"})
        wait_for(lambda: sorted(allowed(program.pid) for program in programs) == ["0", "1"],
                 lambda: f"two programs have two cores: {[allowed(program.pid) for program in programs]}")


class Crowding(House):
    """Work is weighed by the time that tasks get and wait for, which other programs change."""
    ALONE = True

    def test_busy_programs_leave_their_core_for_one_with_idle_programs_at_the_next_look(self):
        """The redeal's shortest interval: 10 s."""
        daemon = self.daemon({"redeal": "10s", "reconcile": "1s"}, one=policy("one", cpus="0-1", bind="core", settle=0))
        programs = [self.program("one") for _ in range(8)]
        wait_for(lambda: sorted(allowed(program.pid) for program in programs) == ["0"] * 4 + ["1"] * 4, "they are spread")
        busy = [program for program in programs if allowed(program.pid) == "0"]
        for program in busy:
            program.busy(program.thread("spinner"))
        wait_for(lambda: sorted(allowed(program.pid) for program in busy) == ["0", "0", "1", "1"],
                 lambda: f"four busy programs share two cores: {[allowed(program.pid) for program in busy]}")
