# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts beside it. Everything they start ends with them; everything they write is under $work.
set -euo pipefail
shopt -s inherit_errexit

build=$(cd "${1:?usage: $0 BUILD_FOLDER ...}" && pwd)
bench=$build/tests/bench
affinityd=$(find "$build" -name affinityd -type f -perm -u+x | head -n 1)
[ -n "$affinityd" ] || { echo "no affinityd below $build" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "needs root" >&2; exit 2; }

# In memory, as /run is on a real host: the journal must not be timed on a disk.
memory=/dev/shm
[ -w "$memory" ] || memory=/tmp
work=$(mktemp -d "$memory/affinityd-bench-XXXXXX")
started=()
# $1: pid. Ends a process of ours and waits for it.
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

# Starts the daemon on $work/policies with folders of its own; sets daemon=PID. $1: file for its log, more: its options.
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

# The value of KEY=VALUE in the line that starts with $1. stdin: lines.
value() { awk -v line="$1" -v key="$2" '$1 == line { for (i = 2; i <= NF; i++) { split($i, p, "="); if (p[1] == key) print p[2] } }'; }

failures=0
# $1: what, $2: figure, $3: of the yardstick, $4: most that the first may be of the second
judge() {
    awk -v what="$1" -v a="$2" -v b="$3" -v most="$4" 'BEGIN {
        r = b > 0 ? a / b : 0; bad = !(b > 0) || r > most
        printf "%-34s %10.1f  yardstick %10.1f  ratio %5.2f  at most %.2f  %s\n", what, a, b, r, most, bad ? "MISSED" : "ok"; exit bad }' ||
        failures=$((failures + 1))
}
last_cpu=$(($(getconf _NPROCESSORS_ONLN) - 1))
