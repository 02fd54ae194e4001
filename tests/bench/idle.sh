#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The costs of the daemon while nothing happens: voluntary context switches, without those that other programs of this machine cause (fork,
# exec and exit are an event each); and resident memory with many tasks under policy: all in place already, and all moved.
# usage: idle.sh BUILD_FOLDER [TASKS, default 5000] [SECONDS, default 60]
. "$(dirname "$0")/common.sh"
tasks=${2:-5000}
seconds=${3:-60}
start_bus
mkdir -p "$work/policies"
printf 'version: 1\nmatch: {comm: idle-crowd}\naffinity: process\ncpus: "0-%s"\nbind: set\n' "$last_cpu" >"$work/policies/crowd.yaml"
gather idle-crowd $((tasks / 5)) "$tasks"
# Context switches of the daemon, and forks on this machine.
look() { awk '/^(voluntary_ctxt_switches|processes)/ { print $2 }' "/proc/$daemon/status" /proc/stat | paste -sd' '; }

# Only the first pass runs: during a pass the daemon also sleeps in system calls.
printf 'version: 1\nreconcile: 1h\n' >"$work/affinityd.yaml"
start_daemon "$work/daemon.log" --config "$work/affinityd.yaml"
sleep 5
read -r before forks_before < <(look)
sleep "$seconds"
read -r after forks_after < <(look)
woken=$((after - before))
forks=$((forks_after - forks_before))
echo "idle tasks=$tasks seconds=$seconds wakeups=$woken forks_of_others=$forks"
[ "$woken" -le $((3 * forks)) ] || { echo "woken without a reason"; failures=$((failures + 1)); }
judge "resident KiB, tasks in place" "$(resident)" 12288 1
end "$daemon"

printf 'version: 1\nmatch: {comm: idle-crowd}\naffinity: process\ncpus: "%s"\nbind: set\n' "$last_cpu" >"$work/policies/crowd.yaml"
start_daemon "$work/daemon.log"
sleep 5
judge "resident KiB, tasks moved" "$(resident)" 12288 1
disperse
exit $((failures > 0))
