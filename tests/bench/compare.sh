#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two builds side by side in one run on one machine: exec -> pinned, the cost of a storm, of a pass, of memory and of idling. Both take
# turns, so that they see the same machine; figures are medians over the turns. Both builds need the same options: with unity builds, the
# daemon's way of one event takes some 2 % more CPU time than without.
# usage: compare.sh OLD_BUILD NEW_BUILD [TURNS, default 10] [TASKS, default 5000]
. "$(dirname "$0")/common.sh"
new_build=$(cd "${2:?usage: $0 OLD_BUILD NEW_BUILD ...}" && pwd)
turns=${3:-10}
tasks=${4:-5000}
declare -A programs=([old]=$affinityd [new]=$(program "$new_build" affinityd))
# The same programs measure both.
bench=$new_build/tests/bench
cpu=$last_cpu
probe='version: 1\nmatch: {comm: pin-probe}\naffinity: process\ncpus: "%s"\nbind: set\n'
crowd_policy='version: 1\nmatch: {comm: idle-crowd}\naffinity: process\ncpus: "%s"\nbind: set\n'

# Starts the daemon of side $1 with the policies that $work/policies has.
start_side() {
    affinityd=${programs[$1]}
    rm -rf "$work/run" "$work/state"
    start_daemon "$work/daemon.log" --config "$work/affinityd.yaml"
}
# $1: side, $2: name of the figures, $3: number of execs. The program that starts them stays on their CPU: left to the scheduler, it is on that of the
# daemon in one turn and not in the next, and waits for it.
time_execs() {
    taskset -c "$cpu" "$bench/exec_latency" "$bench/pin-probe" "$cpu" "$3" >"$work/execs.txt" || echo "$1: missed some" >&2
    sed -n "s/^exec_to_pinned/$2/p" "$work/execs.txt" >>"$work/$1.txt"
}
# $1: side, $2: name of the figures. A daemon with tasks under policy hears of each fork and end, too, and one without of programs only.
# Three times: a single one moves by 4 % for no reason of the daemon.
storm() {
    local i
    for i in 1 2 3; do "$bench/storm" "$bench/storm-child" 5000 --listener "$daemon" | sed "s/^storm/$2/" >>"$work/$1.txt"; done
}
events_of() {
    storm "$1" alone
    time_execs "$1" exec 1000
}
tasks_of() {
    settle
    echo "memory resident_kib=$(resident)" >>"$work/$1.txt"
    time_execs "$1" quiet 1000
    busy_other "$1"
    local before nudge
    before=$(spent)
    kill -HUP "$daemon"
    sleep 0.2
    settle
    echo "pass cpu_us=$(($(spent) - before))" >>"$work/$1.txt"
    # SIGHUP reloads and reconciles everything: the daemon is in a pass nearly all the time.
    # A pause without a new process: on slow machines its start takes 4 ms of the daemon's CPU, or of the one that is watched.
    (exec 9<>"$work/never"; while ! read -rt 0.1 -u 9; do kill -HUP "$daemon"; done) &
    nudge=$!
    started+=("$nudge")
    time_execs "$1" busy 1000
    end "$nudge"
    settle
    storm "$1" beside
}
# Where both CPUs are busy, everything takes longer, most of all where they share a core: how long execs take beside a program that does
# nothing but use the other CPU, the daemon idle.
busy_other() {
    local other=$((cpu > 0 ? 0 : 1))
    taskset -c "$other" sh -c 'while :; do :; done' &
    local spinner=$!
    started+=("$spinner")
    time_execs "$1" beside_spinner 1000
    end "$spinner"
}
# Wake-ups of a daemon that has nothing to do, beyond those that forks, execs and exits of other programs cause.
idle_of() {
    settle
    local before after forks_before forks_after extra
    look() { awk '/^(voluntary_ctxt_switches|processes)/ { print $2 }' "/proc/$daemon/status" /proc/stat | paste -sd' '; }
    read -r before forks_before < <(look)
    sleep 20
    read -r after forks_after < <(look)
    extra=$((after - before - 3 * (forks_after - forks_before)))
    echo "idle wakeups=$((extra > 0 ? extra : 0))" >>"$work/$1.txt"
}

# Prints a figure of both sides. $1: what, $2: line, $3: key, $4: largest allowed ratio of new to old, or - for no limit
show() {
    local old new
    old=$(typical "$work/old.txt" "$2" "$3")
    new=$(typical "$work/new.txt" "$2" "$3")
    awk -v what="$1" -v a="$old" -v b="$new" -v most="$4" 'BEGIN {
        bad = most != "-" && b > a * most
        ratio = (a > 0) ? sprintf("%.2f", b / a) : "-"
        printf "%-34s before %10.1f  after %10.1f  ratio %5s  %s\n", what, a, b, ratio, bad ? "MISSED" : "ok"
        exit bad }' || failures=$((failures + 1))
}

start_bus
mkdir -p "$work/policies"
mkfifo "$work/never" # nothing is written to it
# Only passes that are asked for.
printf 'version: 1\nreconcile: 1h\n' >"$work/affinityd.yaml"
# shellcheck disable=SC2059 # the formats are above
printf "$probe" "$cpu" >"$work/policies/probe.yaml"
for ((turn = 0; turn < turns; turn++)); do
    for side in $( ((turn % 2)) && echo new old || echo old new); do
        start_side "$side"
        events_of "$side"
        end "$daemon"
    done
done
# shellcheck disable=SC2059
printf "$crowd_policy" "$cpu" >"$work/policies/crowd.yaml"
for ((turn = 0; turn < (turns + 2) / 3; turn++)); do
    for side in $( ((turn % 2)) && echo new old || echo old new); do
        # A crowd for each: the daemon moves all of it.
        gather idle-crowd $((tasks / 5)) "$tasks"
        start_side "$side"
        tasks_of "$side"
        idle_of "$side"
        end "$daemon"
        disperse
    done
done
show "exec to pinned p50 us" exec p50_us 1.05
show "exec to pinned p99 us" exec p99_us 1.05
show "storm cpu ms per 1000, no tasks" alone listener_cpu_ms_per_1000 1.05
show "storm cpu ms per 1000, $tasks tasks" beside listener_cpu_ms_per_1000 1.05
show "pass over $tasks tasks, cpu us" pass cpu_us 1.05
show "resident KiB, $tasks tasks moved" memory resident_kib 1.05
show "idle wake-ups in 20 s" idle wakeups 1.05
show "exec p99 us, $tasks tasks, idle" quiet p99_us -
show "exec p99 us, $tasks tasks, a CPU busy" beside_spinner p99_us -
show "exec p99 us, $tasks tasks, in a pass" busy p99_us -
for one in old new; do
    awk -v one="$one" -v a="$(typical "$work/$one.txt" busy p99_us)" -v b="$(typical "$work/$one.txt" beside_spinner p99_us)" \
        'BEGIN { printf "%s: in a pass, against a busy CPU %.2f\n", one, a / b }'
done
judge "new: exec p99 us, in a pass" "$(typical "$work/new.txt" busy p99_us)" "$(typical "$work/new.txt" quiet p99_us)" 1.1
exit $((failures > 0))
