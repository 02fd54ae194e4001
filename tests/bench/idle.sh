#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the daemon does while nothing happens: voluntary context switches and resident memory with many tasks under policy.
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
start_daemon "$work/daemon.log"
sleep 5 # the first pass
switches() { awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$daemon/status"; }
before=$(switches)
sleep "$seconds"
after=$(switches)
resident=$(awk '/^VmRSS/ { print $2 }' "/proc/$daemon/status")
echo "idle tasks=$tasks seconds=$seconds wakeups=$((after - before)) resident_kib=$resident"
# Others' programs on this machine wake it too (every exec is an event): for the figure proper the machine must be still.
judge "resident KiB" "$resident" 12288 1
exec 8>&-
exit $((failures > 0))
