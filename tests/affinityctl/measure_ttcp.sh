#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# affinityctl measure ttcp hands every option to affinity-ttcp, and finds that program where both are built and where they are
# installed.
set -u
affinityctl=$1 verbs=$2 ttcp=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

built=$("$affinityctl" measure ttcp --loopback -n 3 -l 1000 --json) || fail "built: $?"
case $built in *'"buffer_bytes":1000,"bytes":3000,'*) ;; *) fail "options are lost: $built" ;; esac
before=$("$affinityctl" --json measure ttcp --loopback -n 3 -l 1000) || fail "--json before the verb: $?"
case $before in '{"'*) ;; *) fail "--json before the verb: $before" ;; esac
"$affinityctl" measure ttcp --help | grep -q -- --receive-cpus || fail "--help is not affinity-ttcp's"
status=0; "$affinityctl" measure ttcp --loopback --bogus >/dev/null 2>&1 || status=$?
[ $status = 2 ] || fail "an unknown option: exit code $status"

mkdir -p "$work/usr/bin" "$work/usr/libexec/affinityd"
cp "$affinityctl" "$ttcp" "$work/usr/bin"
cp "$verbs" "$work/usr/libexec/affinityd"
"$work/usr/bin/affinityctl" measure ttcp --loopback -n 3 >"$work/text" 2>&1 || fail "installed: $(cat "$work/text")"
ln -s usr/bin/affinityctl "$work/link"
"$work/link" measure ttcp --loopback -n 3 >"$work/text" 2>&1 || fail "installed, by a symbolic link: $(cat "$work/text")"
echo ok
