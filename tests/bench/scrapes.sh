#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# exec -> pinned while an exporter is scraped 1,000 times, against a daemon at rest, in turns.
# usage: scrapes.sh BUILD_FOLDER [TURNS, default 4] [TASKS under policy, default 1000]
. "$(dirname "$0")/common.sh"
turns=${2:-4}
tasks=${3:-1000}
cpu=$last_cpu
scrapes=$((1000 / turns))
exporter=$(program "$build" affinity-exporter)

# Scrapes $1 times, 40 a second, and says how long it took.
scrape() {
    taskset -c 0 python3 - "$1" <<'PYTHON'
import sys, time, urllib.request
took = []
for number in range(int(sys.argv[1])):
    began = time.monotonic()
    text = urllib.request.urlopen("http://127.0.0.1:9073/metrics", timeout=60).read().decode()
    assert "affinityd_up 1\n" in text, text[:200]
    took.append(time.monotonic() - began)
    time.sleep(max(0, 0.025 - took[-1]))
print(f"scrapes count={len(took)} bytes={len(text)} p50_us={sorted(took)[len(took) // 2] * 1e6:.0f} most_us={max(took) * 1e6:.0f}")
PYTHON
}
# The program that starts the others stays on their CPU, as in compare.sh. $1: file for the figures
time_execs() { taskset -c "$cpu" "$bench/exec_latency" "$bench/pin-probe" "$cpu" 1000 >>"$work/$1" || echo "missed some" >&2; }

start_bus
chmod 755 "$work"
mkdir -p "$work/policies"
printf 'version: 1\nreconcile: 1h\n' >"$work/affinityd.yaml"
for name in pin-probe idle-crowd; do
    printf 'version: 1\nmatch: {comm: %s}\naffinity: process\ncpus: "%s"\nbind: set\n' "$name" "$cpu" >"$work/policies/$name.yaml"
done
gather idle-crowd $((tasks / 5)) "$tasks"
start_daemon "$work/daemon.log" --config "$work/affinityd.yaml"
settle
# As systemd starts it: by a user without rights, at the first question.
cp "$exporter" "$work/exporter"
setpriv --reuid=nobody --regid=nogroup --clear-groups --bounding-set=-all taskset -c 0 systemd-socket-activate -l 127.0.0.1:9073 \
    -E "DBUS_SYSTEM_BUS_ADDRESS=$DBUS_SYSTEM_BUS_ADDRESS" "$work/exporter" --runtime-dir "$work/run" >"$work/exporter.log" 2>&1 &
started+=("$!")
wait_for "$work/exporter.log" Listening 20
for ((turn = 0; turn < turns; turn++)); do
    for side in $( ((turn % 2)) && echo scraped rest || echo rest scraped); do
        before=$(spent)
        # As many execs as last as long as the scrapes.
        if [ $side = scraped ]; then scrape "$scrapes" >>"$work/scrapes.txt"; else sleep $((scrapes / 40)); fi &
        meanwhile=$!
        started+=("$meanwhile")
        while kill -0 "$meanwhile" 2>/dev/null; do time_execs $side.txt; done
        wait "$meanwhile"
        echo "$side cpu_us=$(($(spent) - before))" >>"$work/cpu.txt"
    done
done
cat "$work/scrapes.txt"
echo "the daemon's CPU time of a turn, us: at rest $(typical "$work/cpu.txt" rest cpu_us), scraped $(typical "$work/cpu.txt" scraped cpu_us)"
echo "blocks of 1,000 execs: $(wc -l <"$work/rest.txt") and $(wc -l <"$work/scraped.txt")"
judge "exec to pinned p50 us, scraped" "$(typical "$work/scraped.txt" exec_to_pinned p50_us)" "$(typical "$work/rest.txt" exec_to_pinned p50_us)" 1.1
echo "p99 us: at rest $(typical "$work/rest.txt" exec_to_pinned p99_us), scraped $(typical "$work/scraped.txt" exec_to_pinned p99_us)"
exit $((failures > 0))
