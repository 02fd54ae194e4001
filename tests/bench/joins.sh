#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# exec -> pinned by a daemon of which a program asks for joins all the time, against the same daemon at rest, in alternating blocks; and beside
# them what the same joins of another daemon cost, which tells the load on the machine from what the daemon's own work does.
# usage: joins.sh BUILD_FOLDER [SECONDS of joins in all, default 60] [JOINS a second, default 10000]
. "$(dirname "$0")/common.sh"
seconds=${2:-60}
rate=${3:-10000}
blocks=10
per=$((seconds / blocks))
cpu=$last_cpu

mkdir -p "$work/policies" "$work/none"
cat >"$work/policies/probe.yaml" <<POLICY
version: 1
match: {comm: pin-probe}
cpus: "$cpu"
bind: set
POLICY
cat >"$work/policies/joiner.yaml" <<POLICY
version: 1
match: {comm: joiner}
allow_join: bench
threads: [{slot: bench, cpus: "0", bind: cpu}]
POLICY
start_daemon "$work/daemon.log"
"$affinityd" --foreground --policies "$work/none" --runtime-dir "$work/other" --state-dir "$work/other" >"$work/other.log" 2>&1 &
started+=("$!")
wait_for "$work/other.log" ready 20

# $1: file for the figures. As many execs as there is time for.
probe() {
    local end=$((SECONDS + per))
    while [ $SECONDS -lt $end ]; do "$bench/exec_latency" "$bench/pin-probe" "$cpu" 200 >>"$1"; done
}
# $1: folder of the daemon that is asked, $2: file for the figures, $3: file for what it answered
probe_beside_joins() {
    AFFINITY_SOCKET="$1/join" "$bench/joiner" "$rate" "$((per + 2))" >>"$3" &
    local joiner=$!
    started+=("$joiner")
    sleep 0.5
    probe "$2"
    wait "$joiner"
}

for ((block = 0; block < blocks; block++)); do
    probe "$work/rest.txt"
    before=$(spent)
    probe_beside_joins "$work/run" "$work/joins.txt" "$work/answers.txt"
    echo "daemon ms=$((($(spent) - before) / 1000))" >>"$work/spent.txt"
    probe_beside_joins "$work/other" "$work/elsewhere.txt" "$work/others.txt"
done
cat "$work/answers.txt"
echo "CPU time of the daemon in a block of $((per + 2)) s with joins: $(typical "$work/spent.txt" daemon ms) ms"
judge "exec to pinned p50 us, joins" "$(typical "$work/joins.txt" exec_to_pinned p50_us)" "$(typical "$work/rest.txt" exec_to_pinned p50_us)" 1.10
for figure in p50_us p99_us; do
    echo "exec to pinned $figure: at rest $(typical "$work/rest.txt" exec_to_pinned $figure), beside joins" \
        "$(typical "$work/joins.txt" exec_to_pinned $figure), beside joins of another daemon $(typical "$work/elsewhere.txt" exec_to_pinned $figure)"
done
exit $((failures > 0))
