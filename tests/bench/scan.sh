#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# CPU time of a whole scan against ps, and exec -> pinned while the daemon reconciles over the same crowd.
# usage: scan.sh BUILD_FOLDER [PROCESSES, default 20000] [THREADS, default 50000]; both are cut to what pid_max allows
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
mkfifo "$work/hold"
"$bench/crowd" "$processes" "$threads" bench-crowd <"$work/hold" >"$work/crowd.log" &
started+=("$!")
exec 8>"$work/hold"
wait_for "$work/crowd.log" ready 120
"$bench/scan_cost" 5 | tee "$work/scan.txt" || failures=$((failures + 1))
# SIGHUP reloads, which reconciles everything: it is at that nearly all the time.
( while sleep 0.4; do kill -HUP "$daemon"; done ) &
nudge=$!
started+=("$nudge")
"$bench/exec_latency" "$bench/pin-probe" "$cpu" 300 >"$work/busy.txt" || failures=$((failures + 1))
end "$nudge"
for key in p50_us p99_us; do
    judge "exec $key during reconcile" "$(value exec_to_pinned $key <"$work/busy.txt")" "$(value exec_to_pinned $key <"$work/quiet.txt")" 2
done
end "$daemon"

# A whole pass of a daemon that has every one of them under policy: its CPU time from SIGHUP until it sleeps again.
printf 'version: 1\nmatch: {comm: bench-crowd}\naffinity: process\ncpus: "0-%s"\nbind: set\n' "$last_cpu" >"$work/policies/crowd.yaml"
start_daemon "$work/daemon.log"
spent() { awk '{ print int($1 / 1000) }' "/proc/$daemon/schedstat"; }
# Until it takes less than 2 % of a CPU: other programs of this machine go on waking it with their events.
settle() {
    local before
    until before=$(spent) && sleep 0.5 && [ $(($(spent) - before)) -lt 10000 ]; do :; done
}
settle
: >"$work/pass.txt"
for ((pass = 0; pass < 5; pass++)); do
    before=$(spent)
    kill -HUP "$daemon"
    sleep 0.2
    settle
    echo "pass cpu_us=$(($(spent) - before))" >>"$work/pass.txt"
done
pass_ms=$(value pass cpu_us <"$work/pass.txt" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] / 1000 }')
judge "reconcile cpu ms against ps" "$pass_ms" "$(value scan ps_cpu_ms <"$work/scan.txt")" 0.7
awk '/^VmRSS/ { print "resident KiB with all of them under policy", $2 }' "/proc/$daemon/status"
exec 8>&-
exit $((failures > 0))
