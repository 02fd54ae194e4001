#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# exec -> pinned by a daemon that measures (a run over loopback, which takes all the CPU time it can get) against the same daemon at rest,
# in alternating blocks.
# usage: measure_latency.sh BUILD_FOLDER [RUNS per side, default 2000]
. "$(dirname "$0")/common.sh"
runs=${2:-2000}
blocks=10
cpu=$last_cpu
affinityctl=$(program "$build" affinityctl)

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
    "$affinityctl" --runtime-dir "$work/run" measure --no-block >/dev/null
    sleep 1 # until its streams run
    measuring=$(child)
    [ -n "$measuring" ] || { echo "no measurement is running" >&2; exit 2; }
    "$bench/exec_latency" "$bench/pin-probe" "$cpu" "$per" >>"$work/measuring.txt"
    # shellcheck disable=SC2086 # one, or none if it has ended
    kill $measuring
    for ((i = 0; i < 100; i++)); do [ -z "$(child)" ] && break; sleep 0.05; done
done
judge "exec to pinned p50 us, measuring" "$(typical "$work/measuring.txt" exec_to_pinned p50_us)" "$(typical "$work/rest.txt" exec_to_pinned p50_us)" 2
judge "exec to pinned p99 us, measuring" "$(typical "$work/measuring.txt" exec_to_pinned p99_us)" "$(typical "$work/rest.txt" exec_to_pinned p99_us)" 2
exit $((failures > 0))
