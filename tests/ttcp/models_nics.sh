#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# affinityctl measure models on existing NICs, here veth pairs in a network namespace, which needs root. The experiment borrows them and puts
# them back as they were, however the run ends.
set -euo pipefail
affinityctl=$1
if [ "$(id -u)" != 0 ]; then
    status=0; unshare -n true 2>/dev/null || status=$?
    [ $status != 0 ] && echo "ok: no namespaces without root" && exit 0
fi
if [ "${2:-}" = "" ]; then
    work=$(mktemp -d)
    status=0; unshare -nm "$0" "$affinityctl" "$work" || status=$?
    rm -rf "$work"
    exit $status
fi
work=$2
pids=
trap 'for pid in $pids; do kill -9 "$pid" 2>/dev/null || :; done' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

mount -t sysfs none /sys
ip link add ta type veth peer name tb
ip link add tc type veth peer name td
ip link set tb up
ip link add used type veth peer name usedpeer
ip address add 192.0.2.1/24 dev used

# Flags, NAPI threads, addresses, segmentation offload.
describe() {
    for nic in ta tb tc td; do
        [ -e /sys/class/net/$nic ] || { echo "$nic is gone"; continue; }
        echo "$nic $(($(cat /sys/class/net/$nic/flags) & 1)) $(cat /sys/class/net/$nic/threaded) $(ip -4 -o address show $nic | wc -l)"
        ip -d link show $nic | grep -o 'numtxqueues [0-9]*'
    done
}
describe >"$work/before"
same() { describe | diff "$work/before" - >&2 || fail "$1: not as before"; }
start() { # OPTIONS...: in the background until its streams run. A program in the background of a script ignores ^C otherwise.
    env --default-signal=INT "$affinityctl" --json measure models --nics ta:tb,tc:td --rounds 60 "$@" >"$work/json" & pid=$!; pids="$pids $pid"
    for _ in $(seq 100); do [ ! -e /sys/class/net/ta ] && [ -n "$(cat /proc/$pid/task/*/children 2>/dev/null)" ] && break; sleep 0.1; done
    [ ! -e /sys/class/net/ta ] || fail "ta is not borrowed"
}

refused() { # WORDS PAIRS
    status=0; "$affinityctl" measure models --nics "$2" --rounds 1 >/dev/null 2>"$work/err" || status=$?
    [ $status != 0 ] && grep -q "$1" "$work/err" || fail "--nics $2: $status: $(cat "$work/err")"
    same "--nics $2"
}
refused 'expected pairs' ta
refused 'expected pairs' ta:tb:tc
refused 'named twice' ta:tb,tb:tc
refused 'no such interface' ta:tb,tc:nothing
refused 'it is in use: it has the address' ta:tb,tc:used
refused 'cannot be borrowed' ta:lo

"$affinityctl" measure models --no-history --nics ta:tb,tc:td --rounds 4 --seconds 0.1 --models none,full >"$work/text" || fail "$(cat "$work/text")"
grep -q '4 NICs, joined two by two' "$work/text" || fail "$(cat "$work/text")"
grep -q '^none .*(.* to .*)' "$work/text" || fail "no figures: $(cat "$work/text")"
same "a whole run"

start --seconds 1
kill -INT $pid
status=0; wait $pid || status=$?
[ $status = 1 ] && grep -q '"outcome":"killed"' "$work/json" || fail "interrupted: $status $(cat "$work/json")"
same "an interrupted run"

# A virtual interface ends with its namespace: the keeper takes them out of it first.
start --seconds 1
kill -9 $pid
for _ in $(seq 100); do describe | cmp -s "$work/before" - && break; sleep 0.1; done
same "a killed run"

# A NIC disappears during the run: that is an outcome, and the others come back.
start --seconds 3 --direction transmit
sleep 4 # into a measured round
for fd in /proc/$pid/fd/*; do
    case $(readlink "$fd") in net:*) nsenter --net="$fd" ip link delete ta 2>/dev/null && break ;; esac
done
status=0; wait $pid || status=$?
[ $status = 1 ] && grep -q '"outcome":"link_lost"' "$work/json" || fail "unplugged: $status $(cat "$work/json")"
[ ! -e /sys/class/net/ta ] && [ -e /sys/class/net/tc ] && [ -e /sys/class/net/td ] || fail "after unplugging: $(describe)"
echo ok
