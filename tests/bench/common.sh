# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts beside it. Their processes end with them; their files are below $work.
set -euo pipefail
shopt -s inherit_errexit

# $1: build folder, $2: name. Path of a program that was built there.
program() {
    local path
    path=$(find "$1" -path "$1/vm-cache" -prune -o -name "$2" -type f -perm -u+x -print | head -n 1)
    [ -n "$path" ] || { echo "no $2 below $1" >&2; exit 2; }
    echo "$path"
}
build=$(cd "${1:?usage: $0 BUILD_FOLDER ...}" && pwd)
bench=$build/tests/bench
affinityd=$(program "$build" affinityd)
[ "$(id -u)" = 0 ] || { echo "needs root" >&2; exit 2; }

# In memory, like /run on a real host: the time of the journal must not be that of a disk.
memory=/dev/shm
[ -w "$memory" ] || memory=/tmp
work=$(mktemp -d "$memory/affinityd-bench-XXXXXX")
started=()
# $1: pid of a child. Ends it and waits for it.
end() {
    kill -TERM "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}
cleanup() {
    for pid in "${started[@]}"; do end "$pid"; done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# $1: file, $2: text, $3: seconds. Waits until the file has the text.
wait_for() {
    local i
    for ((i = 0; i < $3 * 20; i++)); do
        grep -q "$2" "$1" 2>/dev/null && return 0
        sleep 0.05
    done
    echo "waited in vain for '$2' in $1:" >&2
    cat "$1" >&2
    return 1
}

# Starts the daemon on $work/policies with its own folders; sets daemon=PID. $1: file for its log, rest: its options.
start_daemon() {
    "$affinityd" --foreground --policies "$work/policies" --runtime-dir "$work/run" --state-dir "$work/state" "${@:2}" >"$1" 2>&1 &
    daemon=$!
    started+=("$daemon")
    wait_for "$1" ready 20
}

# Starts the bare listener for name $1 and CPU $2; sets bare=PID.
start_bare() {
    "$bench/bare_listener" "$1" "$2" >"$work/bare.log" &
    bare=$!
    started+=("$bare")
    wait_for "$work/bare.log" ready 5
}

# Starts a bus like the system's, which every server has: the daemon looks for one again and again where there is none.
start_bus() {
    cat >"$work/bus.conf" <<CONFIG
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=$work/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*" eavesdrop="false"/>
<allow receive_sender="*"/></policy></busconfig>
CONFIG
    dbus-daemon --config-file="$work/bus.conf" --nofork --nopidfile >"$work/bus.log" 2>&1 &
    started+=("$!")
    for ((i = 0; i < 100; i++)); do [ -S "$work/bus" ] && break; sleep 0.05; done
    export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$work/bus
}

# The value of KEY=VALUE in the line that starts with $1. stdin: lines.
value() { awk -v line="$1" -v key="$2" '$1 == line { for (i = 2; i <= NF; i++) { split($i, p, "="); if (p[1] == key) print p[2] } }'; }

# Median of the values of KEY ($3) in the lines LINE ($2) of file $1.
typical() { value "$2" "$3" <"$1" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# Microseconds of CPU time that the daemon has used.
spent() { awk '{ print int($1 / 1000) }' "/proc/$daemon/schedstat"; }
# Waits until the daemon takes less than 2 % of a CPU: events of other programs on this machine keep waking it.
settle() {
    local before
    until before=$(spent) && sleep 0.5 && [ $(($(spent) - before)) -lt 10000 ]; do :; done
}
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$daemon/status"; }
# Starts a crowd of $2 processes with $3 threads under the name $1; it stays until hang_up.
gather() {
    rm -f "$work/hold"
    mkfifo "$work/hold"
    "$bench/crowd" "$2" "$3" "$1" <"$work/hold" >"$work/crowd.log" &
    crowd=$!
    started+=("$crowd")
    exec 8>"$work/hold"
    wait_for "$work/crowd.log" ready 120
}
disperse() {
    exec 8>&-
    wait "$crowd" || true
}

failures=0
# $1: what, $2: figure, $3: the yardstick's, $4: the largest allowed ratio of the two
judge() {
    awk -v what="$1" -v a="$2" -v b="$3" -v most="$4" 'BEGIN {
        r = b > 0 ? a / b : 0; bad = !(b > 0) || r > most
        printf "%-34s %10.1f  yardstick %10.1f  ratio %5.2f  at most %.2f  %s\n", what, a, b, r, most, bad ? "MISSED" : "ok"; exit bad }' ||
        failures=$((failures + 1))
}
last_cpu=$(($(getconf _NPROCESSORS_ONLN) - 1))
