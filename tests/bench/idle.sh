#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the daemon does while nothing happens: voluntary context switches, but for those that are owed to others' programs on this machine
# (a birth, an exec and an end each are an event), and resident memory with many tasks under policy: all of them where they are to be,
# and all of them moved.
# usage: idle.sh BUILD_FOLDER [TASKS, default 5000] [SECONDS, default 60]
. "$(dirname "$0")/common.sh"
tasks=${2:-5000}
seconds=${3:-60}
mkdir -p "$work/policies"
printf 'version: 1\nmatch: {comm: idle-crowd}\naffinity: process\ncpus: "0-%s"\nbind: set\n' "$last_cpu" >"$work/policies/crowd.yaml"
mkfifo "$work/hold"
"$bench/crowd" $((tasks / 5)) "$tasks" idle-crowd <"$work/hold" >"$work/crowd.log" &
started+=("$!")
exec 8>"$work/hold"
wait_for "$work/crowd.log" ready 60
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$daemon/status"; }
# Context switches of the daemon, and births on this machine.
look() { awk '/^(voluntary_ctxt_switches|processes)/ { print $2 }' "/proc/$daemon/status" /proc/stat | paste -sd' '; }

# No pass but the first: within one it sleeps in system calls, too.
printf 'version: 1\nreconcile: 1h\n' >"$work/affinityd.yaml"
start_daemon "$work/daemon.log" --config "$work/affinityd.yaml"
sleep 5
read -r before born_before < <(look)
sleep "$seconds"
read -r after born_after < <(look)
woken=$((after - before))
births=$((born_after - born_before))
echo "idle tasks=$tasks seconds=$seconds wakeups=$woken births_of_others=$births"
[ "$woken" -le $((3 * births)) ] || { echo "woken without need"; failures=$((failures + 1)); }
judge "resident KiB, tasks in place" "$(resident)" 12288 1
end "$daemon"

printf 'version: 1\nmatch: {comm: idle-crowd}\naffinity: process\ncpus: "%s"\nbind: set\n' "$last_cpu" >"$work/policies/crowd.yaml"
start_daemon "$work/daemon.log"
sleep 5
judge "resident KiB, tasks moved" "$(resident)" 12288 1
exec 8>&-
exit $((failures > 0))
