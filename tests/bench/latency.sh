#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# exec -> pinned and thread name -> pinned, as the program itself sees them, against a bare listener, in alternating blocks so that both
# see the same machine; then a storm of programs that no policy matches.
# usage: latency.sh BUILD_FOLDER [RUNS per side, default 10000] [STORM, default 50000] [LOAD processes, default 0]
. "$(dirname "$0")/common.sh"
runs=${2:-10000}
storm=${3:-50000}
load=${4:-0}
blocks=10
cpu=$last_cpu

mkdir -p "$work/policies"
cat >"$work/policies/probe.yaml" <<POLICY
version: 1
match: {comm: pin-probe}
affinity: process
cpus: "$cpu"
bind: set
POLICY

missed() { value "$2" missed <"$1" | awk '{ s += $1 } END { print s + 0 }'; }

# Runs one program $runs / $blocks times on each side in turn. $1: more arguments of exec_latency, $2: the name that the bare listener
# pins, $3: name of the lines
compare() {
    local block per=$((runs / blocks)) side
    : >"$work/bare.txt"
    : >"$work/daemon.txt"
    for ((block = 0; block < blocks; block++)); do
        start_bare "$2" "$cpu"
        # shellcheck disable=SC2086 # several words
        "$bench/exec_latency" "$bench/pin-probe" "$cpu" "$per" --load "$load" $1 >>"$work/bare.txt" || true
        end "$bare"
        start_daemon "$work/daemon.log"
        # shellcheck disable=SC2086
        "$bench/exec_latency" "$bench/pin-probe" "$cpu" "$per" --load "$load" $1 >>"$work/daemon.txt" || true
        end "$daemon"
    done
    for side in bare daemon; do echo "$side: $3 $((per * blocks)) runs, missed $(missed "$work/$side.txt" "$3")"; done
    judge "$3 p50 us" "$(typical "$work/daemon.txt" "$3" p50_us)" "$(typical "$work/bare.txt" "$3" p50_us)" 1.5
    judge "$3 p99 us" "$(typical "$work/daemon.txt" "$3" p99_us)" "$(typical "$work/bare.txt" "$3" p99_us)" 2
    [ "$(missed "$work/daemon.txt" "$3")" = 0 ] || failures=$((failures + 1))
}

echo "== $runs execs, $load busy processes"
compare "" pin-probe exec_to_pinned

echo "== $runs threads that name themselves"
cat >"$work/policies/probe.yaml" <<POLICY
version: 1
match: {comm: pin-probe}
affinity: process
threads:
  - {name: probe-thread, cpus: "$cpu", bind: set}
  - {name: "*", cpus: "0-$cpu", bind: set}
POLICY
compare "--thread probe-thread" probe-thread thread_name_to_pinned

echo "== storm of $storm programs that no policy matches, with one that a policy matches in the middle"
cat >"$work/policies/probe.yaml" <<POLICY
version: 1
match: {comm: pin-probe}
affinity: process
cpus: "$cpu"
bind: set
POLICY
"$bench/storm" "$bench/storm-child" "$storm" >"$work/alone.txt"
start_bare pin-probe "$cpu"
"$bench/storm" "$bench/storm-child" "$storm" --listener "$bare" --probe "$bench/pin-probe" "$cpu" >"$work/bare.txt" || true
end "$bare"
start_daemon "$work/daemon.log"
"$bench/storm" "$bench/storm-child" "$storm" --listener "$daemon" --probe "$bench/pin-probe" "$cpu" >"$work/daemon.txt" || failures=$((failures + 1))
end "$daemon"
# A storm gives one figure, no distribution.
figure() { value storm "$2" <"$work/$1.txt"; }
echo "us per start: alone $(figure alone us_per_start), bare $(figure bare us_per_start), daemon $(figure daemon us_per_start)"
echo "the matching one pinned after us: bare $(figure bare probe_us), daemon $(figure daemon probe_us)"
judge "storm cpu ms per 1000" "$(figure daemon listener_cpu_ms_per_1000)" "$(figure bare listener_cpu_ms_per_1000)" 2
grep -c overflowed "$work/daemon.log" | sed 's/^/losses recovered from: /' || true
exit $((failures > 0))
