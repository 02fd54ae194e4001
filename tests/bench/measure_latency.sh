#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# exec -> pinned by one daemon while it measures (a run over loopback, which takes all the CPU time it can get) against the same
# daemon at rest, in alternating blocks.
# usage: measure_latency.sh BUILD_FOLDER [RUNS per side, default 2000]
. "$(dirname "$0")/common.sh"
runs=${2:-2000}
blocks=10
cpu=$last_cpu
affinityctl=$(find "$build" -name affinityctl -type f -perm -u+x | head -n 1)

mkdir -p "$work/policies"
cat >"$work/policies/probe.yaml" <<POLICY
version: 1
match: {comm: pin-probe}
affinity: process
cpus: "$cpu"
bind: set
POLICY
printf 'version: 1\nmeasure: {duration: 60s}\n' >"$work/affinityd.yaml"
start_daemon "$work/daemon.log" --config "$work/affinityd.yaml"

child() { cat /proc/"$daemon"/task/*/children; }
per=$((runs / blocks))
: >"$work/rest.txt"
: >"$work/measuring.txt"
for ((block = 0; block < blocks; block++)); do
    "$bench/exec_latency" "$bench/pin-probe" "$cpu" "$per" >>"$work/rest.txt"
    "$affinityctl" --runtime-dir "$work/run" measure >/dev/null
    sleep 1 # its streams run
    measuring=$(child)
    [ -n "$measuring" ] || { echo "no measurement runs" >&2; exit 2; }
    "$bench/exec_latency" "$bench/pin-probe" "$cpu" "$per" >>"$work/measuring.txt"
    # shellcheck disable=SC2086 # one, or none any more
    kill $measuring
    for ((i = 0; i < 100; i++)); do [ -z "$(child)" ] && break; sleep 0.05; done
done
# Medians over the blocks. $1: file, $2: key
typical() { value exec_to_pinned "$2" <"$work/$1.txt" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
judge "exec to pinned p50 us, measuring" "$(typical measuring p50_us)" "$(typical rest p50_us)" 2
judge "exec to pinned p99 us, measuring" "$(typical measuring p99_us)" "$(typical rest p99_us)" 2
exit $((failures > 0))
