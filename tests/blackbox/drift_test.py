# SPDX-License-Identifier: Apache-2.0
"""A program that sets its own mask each second, under `drift: enforce`."""
from house import House, allowed, policy, python, wait_for

RESETTER = """
import os, sys, time
while True:
    os.sched_setaffinity(0, {0, 1})
    time.sleep(1)
"""


class Fight(House):
    def test_a_mask_is_put_right_soon_again_and_the_fight_named_after_five_corrections(self):
        resetter = self.spawn(*python(RESETTER, f"{self.mark}-resets"))
        # In a network namespace of its own, no link events of others bring further passes.
        daemon = self.daemon({"reconcile": "1h"}, namespace=("unshare", "-n"),
                             resetter=policy(match={"cmdline": f"*{self.mark}-resets"}, cpus="1", bind="set", settle=0))
        wait_for(lambda: daemon.policy("resetter")["threads"] == 1, "it is known")
        wait_for(lambda: allowed(resetter.pid) == "0-1", "it has set its mask")
        daemon.ctl("apply")  # the first look; none of the regular passes comes
        wait_for(lambda: "keeps changing" in daemon.text(), lambda: f"the fight is named: {daemon.text()}")
        self.assertGreaterEqual(daemon.policy("resetter")["drift_put_right"], 5)
        daemon.ctl("status", "-q", code=3)
        self.assertIn("NEEDS ATTENTION", daemon.ctl("status", code=None).text.upper())
