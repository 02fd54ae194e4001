#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 100 runs of affinityctl measure models, each ended at a random moment by ^C or kill -9, and what is left of them: nothing.
# usage: tests/bench/models_kills.sh BUILD_FOLDER [RUNS [SEED]]
set -euo pipefail
build=${1:?usage: $0 BUILD_FOLDER [RUNS [SEED]]}
exec python3 "$(dirname "$0")/../ttcp/models_kills.py" "$build/tools/affinityctl/affinityctl" "${2:-100}" ${3:+"$3"}
