#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# affinityctl measure models as a user sees it: a short run, an interrupted one and a killed one leave nothing behind. Other users than
# root get a message.
set -euo pipefail
affinityctl=$1
work=$(mktemp -d)
pids=
trap 'for pid in $pids; do kill -9 "$pid" 2>/dev/null || :; done; rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

# The NAPI threads of a program's interfaces, by TID and start time: their names have the last digits of the number of its namespace, and a
# later program may get that number again. They end with the namespaces, which the kernel removes in the background.
marks_of() { # PID: as alternatives of a regular expression
    for fd in /proc/"$1"/fd/*; do
        case $(readlink "$fd") in net:*) readlink "$fd" | tr -dc '0-9\n' ;; esac
    done | sort -u | while read -r number; do printf '|%03x' $((number & 0xfff)); done
}
threads() { # MARKS
    cat /proc/[0-9]*/stat 2>/dev/null | sed -nE 's/^([0-9]+) \(napi\/af[mp](-'"$1"')[0-9].*\) [A-Z]( [^ ]+){18} ([0-9]+) .*/\1 \4/p' | sort || :
}
wait_until_gone() { # THREADS
    for _ in $(seq 600); do left=$(comm -12 <(echo "$1") <(threads "$marks")); [ -n "$left" ] || return 0; sleep 0.1; done
    fail "NAPI threads are left: $left"
}
children_of() { cat /proc/"$1"/task/*/children 2>/dev/null || :; }

status=0; "$affinityctl" measure models --models none,fast 2>"$work/err" || status=$?
[ $status = 2 ] && grep -q 'no such model' "$work/err" || fail "a wrong model gives $status: $(cat "$work/err")"
status=0; "$affinityctl" measure models --cpus 99999 2>"$work/err" || status=$?
[ $status = 1 ] || fail "a wrong CPU gives $status"

if [ "$(id -u)" != 0 ]; then
    status=0; "$affinityctl" measure models --rounds 1 2>"$work/err" || status=$?
    [ $status = 1 ] && grep -q 'root is needed' "$work/err" || fail "without root: $status: $(cat "$work/err")"
    echo ok; exit 0
fi

for wrong in "--sizes 0" "--sizes 1,,2" "--sizes 65M" "--rr 1:2:3" "--rr :1" "--sizes --length 5" "--direction up" "--json --svg -"; do
    # shellcheck disable=SC2086  # words
    status=0; "$affinityctl" measure models $wrong >/dev/null 2>"$work/err" || status=$?
    [ $status = 2 ] && [ -s "$work/err" ] || fail "$wrong gives $status: $(cat "$work/err")"
done

"$affinityctl" measure models --connections 2 --rounds 4 --seconds 0.1 --models none,full --svg "$work/out.svg" --state-dir "$work/state" >"$work/text"
"$affinityctl" history --kind models --state-dir "$work/state" | grep -q ' models .*receive, 64 KiB: none ' || fail "it is not kept in the history"
grep -q '^none .*(.* to .*)' "$work/text" || fail "no figures: $(cat "$work/text")"
grep -Eq '^full .*(no difference shown|%)' "$work/text" || fail "no verdict: $(cat "$work/text")"
grep -q 'no NIC' "$work/text" || fail "not labelled"
grep -Eq '^ +full +[#+]' "$work/text" || fail "no bars"
python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$work/out.svg" || fail "the SVG is not XML"

# The whole curve in one run. affinityctl says beforehand how many rounds that is; --sizes alone are those of the paper.
"$affinityctl" --json measure models --connections 1 --rounds 1 --seconds 0.1 --models none,full --direction both --sizes --rr 1,1:1K \
    --no-history --svg "$work/curve.svg" >"$work/json" 2>"$work/err" || fail "curve: $(cat "$work/err" "$work/json")"
grep -q '^measuring 24 rounds of 0.1 s takes about ' "$work/err" || fail "not told beforehand: $(cat "$work/err")"
python3 - "$work/json" "$work/curve.svg" <<'END'
import json, sys, xml.dom.minidom
report = json.load(open(sys.argv[1]))
points = [(point["direction"], point["bytes"], point["response_bytes"]) for point in report["points"]]
sizes = (128, 1024, 4096, 16384, 65536)
assert points == [(work, size, None) for work in ("receive", "transmit") for size in sizes] + [("answer", 1, 1), ("answer", 1, 1024)], points
assert (report["direction"], report["bytes"]) == ("receive", 65536), report
for point in report["points"]:
    for model in point["models"]:
        (sample,) = model["samples"]
        assert sample["bits_per_second"] > 0 and sample["processes_cpu_seconds"] + sample["softirq_cpu_seconds"] > 0, sample
        assert ("p50_seconds" in sample) == (point["direction"] == "answer"), sample
        if point["direction"] == "answer":
            assert 0 < sample["p50_seconds"] <= sample["p99_seconds"] < 10 and sample["exchanges"] > 0, sample
            assert sample["bytes"] == sample["exchanges"] * (point["bytes"] + point["response_bytes"]), sample
xml.dom.minidom.parse(sys.argv[2])
END

# A program in the background of a script ignores ^C otherwise.
env --default-signal=INT "$affinityctl" --json measure models --connections 1 --rounds 60 --seconds 1 >"$work/json" & pid=$!; pids="$pids $pid"
for _ in $(seq 100); do [ -n "$(children_of $pid)" ] && break; sleep 0.1; done
sleep 0.3
kill -INT $pid
status=0; wait $pid || status=$?
[ $status = 1 ] || fail "interrupted: exit code $status"
python3 - "$work/json" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["outcome"] == "killed" and report["reason"], report
assert len(report["models"]) == 4
END

mkfifo "$work/pipe"
status=0; "$affinityctl" measure models --rounds 60 --svg "$work/pipe" >"$work/text" 2>&1 || status=$?
[ $status = 1 ] && grep -q 'not a regular file: refused' "$work/text" || fail "a pipe is no place for a picture: $status, $(cat "$work/text")"

# First a measuring process is killed, which is the outcome and ends the others. Then the program itself.
"$affinityctl" --json measure models --connections 1 --rounds 60 --seconds 5 >"$work/json" & pid=$!; pids="$pids $pid"
for _ in $(seq 100); do [ -n "$(children_of $pid)" ] && break; sleep 0.1; done
sleep 0.3
# The first rounds are short: a child that is seen may have ended already. The end of an experiment's process ends the experiment.
for _ in $(seq 200); do
    read -r child _ <<<"$(children_of $pid)" || :
    [ -z "$child" ] || kill -9 "$child" 2>/dev/null || :
    grep -q '"outcome"' "$work/json" && break
    sleep 0.05
done
status=0; wait $pid || status=$?
[ $status = 1 ] && grep -q '"outcome":"killed"' "$work/json" || fail "killed child: $status $(cat "$work/json")"

"$affinityctl" measure models --connections 2 --rounds 60 --seconds 5 >/dev/null 2>&1 & pid=$!; pids="$pids $pid"
for _ in $(seq 100); do [ -n "$(children_of $pid)" ] && break; sleep 0.1; done
children=$(children_of $pid)
marks=$(marks_of $pid)
seen=$(threads "$marks")
[ "$(echo "$seen" | wc -l)" = 4 ] || fail "of two pairs of interfaces, these NAPI threads are seen: $seen"
kill -9 $pid
wait $pid 2>/dev/null || :
wait_until_gone "$seen"
for child in $children; do [ ! -e "/proc/$child" ] || grep -q '^State:.Z' "/proc/$child/status" || fail "process $child is left"; done
echo ok
