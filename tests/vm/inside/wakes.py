# SPDX-License-Identifier: Apache-2.0
"""Which wake-ups affinityctl counts in this kernel by programs of its own: each kernel keeps elsewhere what these read, and has its own
verifier."""
import contextlib
import json
import subprocess

from harness import run, test

KINDS = ("futex", "pipe", "socket", "counter", "event", "tcp")


@contextlib.contextmanager
def sharing(*words):
    with subprocess.Popen(["/host/sharing-threads", "--pause", "2000", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout.readline() == "ready\n"
            yield program.pid
        finally:
            program.kill()


def seen(pid):
    answer = json.loads(run("affinityctl", "sharers", str(pid), "--for", "5s", "--json"))
    names = {thread["tid"]: thread["name"] for thread in answer["threads"]}
    return answer, {(names[pair["one"]], names[pair["other"]]) for pair in answer["pairs"] if pair["sharers"]}


@test()
def threads_that_wake_each_other_are_found():
    with sharing(*KINDS) as pid:
        answer, pairs = seen(pid)
    assert pairs == {(f"{kind}-a", f"{kind}-b") for kind in KINDS}, answer
    return f"{answer['wakeups']} wake-ups"


@test()
def what_interrupts_wake_is_nobodys():
    with sharing("independent") as pid:
        answer, pairs = seen(pid)
    assert not pairs, answer
    assert sum(thread["woken_by_interrupts"] for thread in answer["threads"]) > 1000, answer


@test()
def reads_are_counted_not_sampled():
    with sharing("tcp"):
        answer = json.loads(run("affinityctl", "locality", "--for", "2s", "--json"))
    assert answer["exact"], answer["why_sampled"]
    assert answer["all"]["reads"] > 100, answer


@test()
def intruders_of_a_program_are_named():
    with subprocess.Popen(["taskset", "-c", "1", "sh", "-c", "while :; do :; done"]) as program:
        answer = json.loads(run("affinityctl", "intruders", "1", "--for", "5s", "--json"))
        program.kill()
    assert answer["method"] == "tracepoints", answer["notes"]
    assert answer["per_cpu"][0]["program"] == f"sh {program.pid}", answer
    assert any(source["kind"] == "tick" and source["longest_us"] > 0 for source in answer["sources"]), answer
    return f"{len(answer['sources'])} sources; {' '.join(answer['notes'])}"
