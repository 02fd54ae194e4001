#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills the daemon with SIGKILL at random moments under churn, then starts it once more and stops it in order. Afterwards
# every surviving task and every interrupt must have the mask that it had before the first start; the daemon is not asked.
# usage: kill9.sh BUILD_FOLDER [ROUNDS, default 500] [--torn | --full]
#   --torn  cuts the journal at a random byte after each kill;  --full  fills its file system
. "$(dirname "$0")/common.sh"
rounds=${2:-500}
mode=${3:-}
mkdir -p "$work/policies" "$work/run"
printf 'version: 1\nmatch: {comm: churn-firm}\naffinity: process\ncpus: "%s"\nbind: set\n' "$last_cpu" >"$work/policies/churn.yaml"
if [ "$mode" = --full ]; then
    mount -t tmpfs -o size=1m,mode=755 affinityd-bench "$work/run"
    trap 'cleanup_pids; umount "$work/run"; rm -rf "$work"' EXIT
    cleanup_pids() { for pid in "${started[@]}"; do end "$pid"; done; }
fi
mkfifo "$work/hold"
"$bench/churn" 20 churn-firm <"$work/hold" >"$work/churn.log" &
started+=("$!")
exec 8>"$work/hold"
wait_for "$work/churn.log" ready 10
mapfile -t firm < <(grep -E '^[0-9]+$' "$work/churn.log")
sleep 0.5 # by then the firm processes have made their threads

masks() {
    local pid task
    for pid in "${firm[@]}"; do
        for task in /proc/"$pid"/task/*; do
            echo "${task##*/} $(awk '/^Cpus_allowed_list/ { print $2 }' "$task/status")"
        done
    done
    for file in /proc/irq/*/smp_affinity_list; do echo "$file $(cat "$file" 2>/dev/null || echo gone)"; done
}
masks >"$work/before"
pinned=0
if [ "$mode" = --full ]; then
    # The disk fills up while a daemon runs, so that there is something to put back.
    start_daemon "$work/daemon.log"
    sleep 0.5
    dd if=/dev/zero of="$work/run/filler" bs=1k status=none 2>/dev/null || true
    kill -KILL "$daemon"
    wait "$daemon" 2>/dev/null || true
    cmp -s <(masks) "$work/before" || pinned=1
fi
for ((round = 0; round < rounds; round++)); do
    "$affinityd" --foreground --policies "$work/policies" --runtime-dir "$work/run" --state-dir "$work/state" >"$work/daemon.log" 2>&1 &
    daemon=$!
    sleep "$(awk -v r=$RANDOM 'BEGIN { print 0.3 * r / 32768 }')"
    kill -KILL "$daemon" 2>/dev/null || { echo "round $round: the daemon had ended by itself:" >&2; cat "$work/daemon.log" >&2; exit 1; }
    wait "$daemon" 2>/dev/null || true
    if ((round % 25 == 0)); then cmp -s <(masks) "$work/before" || pinned=$((pinned + 1)); fi
    if [ "$mode" = --torn ]; then
        for file in "$work"/run/*journal*; do
            size=$(stat -c %s "$file")
            # Only the last record: those before it were written whole and must hold.
            truncate -s $((size > 8 ? size - RANDOM % 8 : size)) "$file"
        done
    fi
done
echo "looks that found masks changed: $pinned"
start_daemon "$work/daemon.log"
sleep 1
end "$daemon"
masks >"$work/after"
wrong=$(diff "$work/before" "$work/after" | grep -c '^>' || true)
echo "kill9 rounds=$rounds mode=${mode:-plain} tasks=$(grep -vc irq "$work/before") wrong=$wrong"
((wrong == 0)) || { diff "$work/before" "$work/after" | head -n 20; failures=1; }
((pinned > 0)) || { echo "nothing was ever pinned: the test shows nothing"; failures=1; }
exec 8>&-
exit $((failures > 0))
