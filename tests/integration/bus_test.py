# SPDX-License-Identifier: Apache-2.0
"""The whole daemon on a message bus of the test's own that is restarted: it rejoins, says so, and answers."""
import contextlib
import json
import os
import subprocess
import unittest

from daemon import Daemon, spawn, wait_for

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><listen>unix:path={socket}</listen><auth>EXTERNAL</auth><policy context="default">
<allow send_destination="*" eavesdrop="false"/><allow receive_sender="*"/><allow own="*"/><allow user="*"/></policy></busconfig>
"""


class Bus(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.daemon = Daemon(self.stack, {"nobody.yaml": "version: 1\nmatch: {comm: nobody-is-called-so}\n"})
        self.socket = self.daemon.folder / "bus"
        (self.daemon.folder / "bus.conf").write_text(CONFIG.format(socket=self.socket), encoding="utf-8")
        os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = f"unix:path={self.socket}"
        self.addCleanup(os.environ.pop, "DBUS_SYSTEM_BUS_ADDRESS", None)

    def begin_bus(self):
        bus = spawn(self.stack, "dbus-daemon", f"--config-file={self.daemon.folder}/bus.conf", "--nofork", "--nopidfile")
        wait_for(self.socket.exists, "the bus listens")
        return bus

    def end_bus(self, bus):
        bus.kill()
        bus.wait()
        self.socket.unlink()

    @staticmethod
    def ask():
        """What the daemon says on the bus; no value: nobody has its name."""
        done = subprocess.run(["busctl", "--system", "--json=short", "call", "org.affinityd", "/org/affinityd", "org.affinityd.Manager1",
                               "GetStatus"], capture_output=True, text=True, timeout=60, check=False)
        return json.loads(json.loads(done.stdout)["data"][0]) if done.returncode == 0 else None

    def test_a_bus_that_is_restarted_twice_is_joined_again_and_the_log_says_so(self):
        bus = self.begin_bus()
        self.daemon.start()
        wait_for(self.ask, "the daemon answers on the bus")
        for times in (1, 2):
            self.end_bus(bus)
            wait_for(lambda: self.daemon.text().count("not on the system bus") == times, "the loss is told")
            self.assertEqual(self.daemon.process.pid, self.daemon.status()["pid"], "its own socket needs no bus")
            bus = self.begin_bus()
            wait_for(lambda: self.daemon.text().count("on the system bus as org.affinityd") == times + 1, "the return is told")
            self.assertEqual(self.daemon.process.pid, wait_for(self.ask, "it answers again")["pid"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
