#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# affinity-ttcp as a user sees it: data through a pipe, exit codes, a plain TCP peer.
set -eu
ttcp=$1
work=$(mktemp -d)
pids=
trap 'for pid in $pids; do kill "$pid" 2>/dev/null || :; done; rm -rf "$work"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }

# A file goes through unchanged, and the report does not mix with it.
port=$((20000 + $$ % 20000))
head -c 3000017 /dev/urandom > "$work/in"
"$ttcp" -r -p $port 127.0.0.1 > "$work/out" 2> "$work/report" & pids="$pids $!"; receiver=$!
"$ttcp" -t -p $port --wait 5 127.0.0.1 < "$work/in" > "$work/sent" 2>&1 || {
    sleep 1; "$ttcp" -t -p $port --wait 5 127.0.0.1 < "$work/in" > "$work/sent"; }
wait $receiver
cmp "$work/in" "$work/out" || fail "the data was changed on the way"
grep -q '^ttcp-r: 3000017 bytes in .* real seconds = .* KB/sec +++$' "$work/report" || fail "report of the receiver"
grep -q '^ttcp-t: 3000017 bytes in ' "$work/sent" || fail "report of the transmitter"

# As the daemon calls it.
line=$("$ttcp" --loopback --seconds 0.3 --json)
[ "$(printf '%s\n' "$line" | wc -l)" = 1 ] || fail "not one line"
case $line in *'"outcome":"done"'*'"path":"loopback"'*'"touches_nic_interrupts":false'*) ;; *) fail "$line";; esac
"$ttcp" --loopback --seconds 0.2 --streams 4 -D -b 65536 -l 1000 > "$work/many"
grep -q 'touches no NIC interrupt' "$work/many" || fail "loopback is not labelled"

# Without a peer: reported in JSON, exit code 1. A wrong command line: 2.
status=0; line=$("$ttcp" --target 127.0.0.1:1 --seconds 1 --json) || status=$?
[ $status = 1 ] || fail "exit code $status"
case $line in *'"outcome":"unreachable"'*) ;; *) fail "$line";; esac
for wrong in "" "-t" "-t -r h" "--loopback -l 0" "--loopback --cpus x" "-r --receive-cpus 0" "-t h --streams 2" "--loopback --seconds nan" \
             "--loopback --stall nan" "--loopback --wait nan" "--sink --idle-exit nan" \
             "--target :1" "--loopback --seconds -1" "--loopback --nonsense"; do
    status=0; "$ttcp" $wrong > "$work/o" 2>&1 < /dev/null || status=$?
    [ $status = 2 ] || fail "'$wrong' gives exit code $status"
done

# A sink serves one peer after the other and ends without one.
"$ttcp" --sink -p $((port + 1)) --idle-exit 1 --json > "$work/sink" & pids="$pids $!"; sink=$!
sleep 0.3
"$ttcp" --target 127.0.0.1:$((port + 1)) --bytes 100000 --json > /dev/null
"$ttcp" --target 127.0.0.1:$((port + 1)) --bytes 200000 --json > /dev/null
wait $sink
[ "$(wc -l < "$work/sink")" = 2 ] || fail "sink: $(cat "$work/sink")"
grep -q '"bytes":200000' "$work/sink" || fail "sink lost bytes"

# As a service manager starts it: with a listening socket, and with each connection (Accept=yes, as in the shipped unit).
cat > "$work/manager.py" <<'END'
import os, socket, subprocess, sys
ttcp, accept = sys.argv[1], sys.argv[2] == "accept"
listener = socket.create_server(("127.0.0.1", 0))
def give(given, *more):
    # Only the child knows its PID, so a shell inserts it.
    return subprocess.Popen(["sh", "-c", 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" "$@"', ttcp, "--sink", "--json", *more],
                            preexec_fn=lambda: os.dup2(os.dup(given.fileno()), 3), close_fds=False, stdout=subprocess.PIPE, text=True)
sink = None if accept else give(listener, "--idle-exit", "1")
source = subprocess.Popen([ttcp, "--target", "127.0.0.1:%d" % listener.getsockname()[1], "--bytes", "300000", "--json"], stdout=subprocess.DEVNULL)
if accept:
    connection, _ = listener.accept()
    sink = give(connection, "--seconds", "600")
    connection.close()
output, _ = sink.communicate(timeout=30)
assert source.wait(timeout=30) == 0 and sink.returncode == 0, (source.returncode, sink.returncode, output)
assert '"bytes":300000' in output and '"outcome":"done"' in output and output.count("\n") == 1, output
END
for how in listen accept; do python3 "$work/manager.py" "$ttcp" $how || fail "given a socket: $how"; done
echo ok
