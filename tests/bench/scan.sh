#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# CPU time of a whole scan against ps, and exec -> pinned while the daemon reconciles the same crowd.
# usage: scan.sh BUILD_FOLDER [PROCESSES, default 20000] [THREADS, default 50000]; pid_max limits both
. "$(dirname "$0")/common.sh"
processes=${2:-20000}
threads=${3:-50000}
room=$(($(cat /proc/sys/kernel/pid_max) * 8 / 10))
if ((threads > room)); then
    processes=$((processes * room / threads))
    threads=$room
    echo "pid_max allows $processes processes with $threads threads"
fi
cpu=$last_cpu
mkdir -p "$work/policies"
printf 'version: 1\nmatch: {comm: pin-probe}\naffinity: process\ncpus: "%s"\nbind: set\n' "$cpu" >"$work/policies/probe.yaml"

start_daemon "$work/daemon.log"
"$bench/exec_latency" "$bench/pin-probe" "$cpu" 300 >"$work/quiet.txt" || failures=$((failures + 1))
gather bench-crowd "$processes" "$threads"
"$bench/scan_cost" 5 | tee "$work/scan.txt" || failures=$((failures + 1))
# SIGHUP reloads and reconciles everything: the daemon is in a pass nearly all the time.
( while sleep 0.4; do kill -HUP "$daemon"; done ) &
nudge=$!
started+=("$nudge")
"$bench/exec_latency" "$bench/pin-probe" "$cpu" 300 >"$work/busy.txt" || failures=$((failures + 1))
end "$nudge"
for key in p50_us p99_us; do
    judge "exec $key during reconcile" "$(value exec_to_pinned $key <"$work/busy.txt")" "$(value exec_to_pinned $key <"$work/quiet.txt")" 2
done
end "$daemon"

# A whole pass with every task under policy: CPU time from SIGHUP until the daemon sleeps again.
printf 'version: 1\nmatch: {comm: bench-crowd}\naffinity: process\ncpus: "0-%s"\nbind: set\n' "$last_cpu" >"$work/policies/crowd.yaml"
start_daemon "$work/daemon.log"
settle
: >"$work/pass.txt"
for ((pass = 0; pass < 5; pass++)); do
    before=$(spent)
    kill -HUP "$daemon"
    sleep 0.2
    settle
    echo "pass cpu_us=$(($(spent) - before))" >>"$work/pass.txt"
done
pass_ms=$(typical "$work/pass.txt" pass cpu_us | awk '{ print $1 / 1000 }')
judge "reconcile cpu ms against ps" "$pass_ms" "$(value scan ps_cpu_ms <"$work/scan.txt")" 0.7
echo "resident KiB with all of them under policy $(resident)"
disperse
exit $((failures > 0))
