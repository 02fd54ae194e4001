#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes one target after the other, each from its seeds:  tests/fuzz/run.sh build-fuzz [SECONDS [TARGET...]]
# Findings are left in the present folder and ends the run with an error.
set -euo pipefail
build=$(realpath "${1:?usage: run.sh BUILD_DIR [SECONDS [TARGET...]]}")
seconds=${2:-600}
shift; [ $# -eq 0 ] || shift
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- cpulist cpumask expr policy irq netlink join join-socket
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
number=0
for target in "$@"; do
    mkdir "$scratch/$target"
    options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 -artifact_prefix="$target-")
    [ ! -e "$here/$target.dict" ] || options+=(-dict="$here/$target.dict")
    seeds=()
    [ ! -d "$here/seeds/$target" ] || seeds+=("$here/seeds/$target")
    texts=$scratch/texts-$target # of tables and of lists of seeds, one a file
    mkdir "$texts"
    if [ "$target" = policy ]; then
        awk -v folder="$texts" '/^--- |^[+][+][+] /{ file = folder "/" ++n; next } /^=== /{ file = "" } file { print >file }' "$here"/../policies/*.table
    elif [ -e "$here/seeds/$target.lines" ]; then
        while IFS= read -r line; do printf '%b' "$line" >"$texts/$((++number))"; done <"$here/seeds/$target.lines"
    fi
    seeds+=("$texts")
    echo "== $target, $seconds s"
    "$build/tests/fuzz/$target-fuzz" "${options[@]}" "$scratch/$target" "${seeds[@]}" >"$scratch/log" 2>&1 || failed=1
    grep -E 'ERROR|SUMMARY|stat::|DONE|Test unit written' "$scratch/log" || tail -5 "$scratch/log"
done
exit $failed
