#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A build with -Dcallback_watch=true under churn: how many callbacks take more than 5 ms of CPU time. One daemon sees storms of execs,
# programs that come, go and rename themselves, a process of 2,000 threads, reloads, requests on both buses, and a polkit and a systemd
# that never answer; another one, in a network namespace, sees 100,000 sockets (process events reach the initial namespace only).
# Prints the longest callback of each, and the stacks of those that were too long. The machine itself bills its hypervisor, its interrupts and
# the locks of its kernel to whoever runs; so a program that looks at one line in /proc at a time runs beside (clock_steps.cpp). A daemon fails
# that takes longer than 5 ms more often, for its CPU time, than chance allows for that program (one of 100), or longer than 20 ms at once.
# usage: callback_watch.sh BUILD_FOLDER [SECONDS, default 600] [THREADS, default 2000] [SOCKETS, default 100000]
. "$(dirname "$0")/common.sh"
seconds=${2:-600}
threads=${3:-2000}
sockets=${4:-100000}
affinityctl=$(program "$build" affinityctl)
meson introspect "$build" --buildoptions | python3 -c 'import json, sys
sys.exit(not any(option["name"] == "callback_watch" and option["value"] for option in json.load(sys.stdin)))' || { echo "this build has no watch: meson setup -Dcallback_watch=true" >&2; exit 2; }
chmod 711 "$work"

start_bus # with services that hang
mkfifo "$work/silence" "$work/hold2"
"$bench/silent_service" "$DBUS_SYSTEM_BUS_ADDRESS" org.freedesktop.PolicyKit1 org.freedesktop.systemd1 <"$work/silence" >"$work/silent.log" 2>&1 &
started+=("$!")
exec 7>"$work/silence"
wait_for "$work/silent.log" ready 10

mkdir -p "$work/policies"
printf 'version: 1\nmatch: {comm: pin-probe}\naffinity: process\ncpus: "%s"\nbind: set\n' "$last_cpu" >"$work/policies/probe.yaml"
printf 'version: 1\nmatch: {comm: watch-churn}\ncpus: "%s"\nthreads:\n  - {name: "worker-*", cpus: "0", bind: set}\n  - {name: "*"}\n' \
    "$last_cpu" >"$work/policies/churn.yaml"
printf 'version: 1\nmatch: {comm: watch-crowd}\ncpus: "%s"\nbind: set\n' "$last_cpu" >"$work/policies/crowd.yaml"
# Its cpuset is systemd's to set.
unit=affinityd-watch-$$.service
printf 'version: 1\nmatch: {unit: %s}\nmeans: cpuset\ncpus: "%s"\n' "$unit" "$last_cpu" >"$work/policies/unit.yaml"
printf 'version: 1\nreconcile: 5s\n' >"$work/affinityd.yaml"
for base in /sys/fs/cgroup/systemd /sys/fs/cgroup; do [ -e "$base/cgroup.procs" ] && break; done
group=$base/system.slice/$unit
mkdir -p "$group"
sleep infinity &
member=$!
started+=("$member")
echo "$member" >"$group/cgroup.procs"
trap 'cleanup; rmdir "$group" 2>/dev/null || true' EXIT

export AFFINITYD_CALLBACK_GOES_ON=1
# What a hypervisor has taken back from a virtual machine (free page reporting) it gives again on the first touch, which takes 13 ms for two
# MiB on some. So the daemons keep what they have had: the other program takes no new memory either.
export GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824
start_daemon "$work/daemon.log" --config "$work/affinityd.yaml"
first=$daemon

# The second daemon and its sockets. $1: affinityd, $2: work folder, $3: sockets program, $4: count
mkdir -p "$work/far/policies"
printf 'version: 1\nmatch: {comm: sockets}\naffinity: full\nnics: auto\n' >"$work/far/policies/sockets.yaml"
unshare --net sh -c 'ip link set lo up
    "$3" "$4" <"$2/hold2" >"$2/sockets.log" 2>&1 &
    exec "$1" --foreground --config "$2/affinityd.yaml" --policies "$2/far/policies" --runtime-dir "$2/far/run" --state-dir "$2/far/state"' \
    sh "$affinityd" "$work" "$bench/sockets" "$sockets" >"$work/far.log" 2>&1 &
second=$!
started+=("$second")
exec 6>"$work/hold2"
wait_for "$work/far.log" ready 60
wait_for "$work/sockets.log" ready 120

mkfifo "$work/churning"
"$bench/churn" 20 watch-churn <"$work/churning" >/dev/null &
started+=("$!")
exec 5>"$work/churning"
# Until the end, at which $work/churning goes away.
repeat() { while [ -e "$work/churning" ]; do "$@"; done; }
storms() { "$bench/storm" "$bench/storm-child" 5000 --probe "$bench/pin-probe" "$last_cpu" >/dev/null || true; sleep 0.2; }
crowds() { sleep 10 | "$bench/crowd" 2 $((threads + 1)) watch-crowd >/dev/null; }
requests() {
    local verb
    for verb in status plan "explain $first" "explain $member" reload; do
        # shellcheck disable=SC2086 # a verb and its argument
        timeout 30 "$affinityctl" --runtime-dir "$work/run" --json $verb >/dev/null 2>&1 || true
    done
    # Someone else has to ask polkit, which is silent.
    timeout 2 setpriv --reuid=65534 --regid=65534 --clear-groups "$affinityctl" --runtime-dir "$work/run" apply >/dev/null 2>&1 || true
    timeout 2 setpriv --reuid=65534 --regid=65534 --clear-groups "$affinityctl" --runtime-dir "$work/run" status >/dev/null 2>&1 || true
    timeout 30 "$affinityctl" --runtime-dir "$work/far/run" --json status >/dev/null 2>&1 || true
    sleep 1
}
mkfifo "$work/stepping"
"$bench/clock-steps" 5000 <"$work/stepping" >"$work/steps.txt" &
started+=("$!")
exec 4>"$work/stepping"
parts=()
for part in storms crowds requests; do
    repeat "$part" &
    parts+=("$!")
done

alive() { kill -0 "$first" 2>/dev/null && kill -0 "$second" 2>/dev/null; }
begin=$SECONDS
while alive && ((SECONDS - begin < seconds)); do sleep 1; done
alive || { echo "a daemon ended after $((SECONDS - begin)) s"; failures=1; }
rm "$work/churning"
wait "${parts[@]}" || true
exec 4>&- 5>&- 6>&-
spent_ms() { awk '{ print int($1 / 1000000) }' "/proc/$1/schedstat"; }
alive && spent=([0]="$(spent_ms "$first")" [1]="$(spent_ms "$second")")
end "$first"
end "$second"
# The program's own functions by name, outermost last.
resolve() {
    local line address
    while read -r line; do
        address=$(sed -n 's/.*affinityd(+\(0x[0-9a-f]*\)).*/\1/p' <<<"$line")
        if [ -n "$address" ]; then addr2line -fCe "$affinityd" "$address" | head -n 1; else echo "$line"; fi
    done
}
# $1: log, $2: its daemon's CPU time in ms. Whether it is so often late by chance, as the other program is.
judge_callbacks() {
    python3 - "$1" "$2" "$work/steps.txt" <<'CODE'
import math, re, sys
took = [int(us) for us in re.findall(r"a callback took (\d+) us", open(sys.argv[1]).read())]
steps, cpu_ms, longest = map(int, re.findall(r"=(\d+)", open(sys.argv[3]).read()))
part = int(sys.argv[2]) / (int(sys.argv[2]) + cpu_ms)
count = len(took) + steps
chance = sum(math.comb(count, k) * part**k * (1 - part) ** (count - k) for k in range(len(took), count + 1))
print(f"{len(took)} callbacks of more than 5 ms in {int(sys.argv[2]) / 1000:.1f} s of CPU time, the longest {max(took, default=0)} us; "
      f"one look at /proc at a time: {steps} in {cpu_ms / 1000:.1f} s, the longest {longest} us; as many by chance: {chance:.3f}")
sys.exit(chance < 0.01 or max(took, default=0) > 20_000)
CODE
}
i=0
for log in daemon far; do
    [ "${spent[i]:-0}" -gt 0 ] && judge_callbacks "$work/$log.log" "${spent[i]}" || failures=$((failures + 1))
    i=$((i + 1))
    grep -E 'a callback took|longest callback|\[0x' "$work/$log.log" | resolve | sed "s/^/$log: /" || echo "$log: no callback of more than 5 ms"
done
echo "callback_watch seconds=$((SECONDS - begin)) failures=$failures"
exit $((failures > 0))
