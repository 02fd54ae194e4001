# SPDX-License-Identifier: Apache-2.0
"""What happens to a task, and which CPUs it has then."""
from house import House, measured, allowed, policy, report

WEB = policy("web", cpus="0", bind="set")
THREADS = WEB | {"threads": [{"name": "io-*", "cpus": "1", "bind": "cpu"}, {"name": "free-*", "leave": True}]}


class Births(House):
    def test_a_program_that_was_there_before(self):
        web = self.program("web")
        web.thread("io-1"), web.thread("free-1"), web.thread("other")
        self.daemon(web=THREADS)
        self.expect_threads(web, {self.name("web"): "0", "io-1": "1", "free-1": self.everywhere, "other": "0"})

    def test_a_program_started_later(self):
        self.daemon(web=WEB)
        web = self.program("web")
        report(f"exec -> mask after {1000 * measured(lambda: allowed(web.pid) == '0', 'it is placed'):.1f} ms")

    def test_a_thread_born_later(self):
        self.daemon(web=THREADS)
        web = self.program("web")
        self.expect(web, "0")
        self.expect(web, "1", tid=web.thread("io-1"))
        self.expect(web, self.everywhere, tid=web.thread("free-1"))
