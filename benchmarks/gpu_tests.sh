#!/usr/bin/env bash
# Every test that needs a GPU, in one command, with a dated record for docs/reliability.md:
#   benchmarks/gpu_tests.sh [RECORD]          (by default gpu-tests.txt)
# Code that published numbers depend on (--graph, --together, compiled, Triton kernels) is tested by
# these alone. Only the files that have such tests are imported; one that cannot be, for a package that
# is not installed, is an error in the record, and the others run.
set -euo pipefail
cd "$(dirname "$0")/.."
record=${1:-gpu-tests.txt}
python=${PYTHON:-python3}
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}"
"$python" -c 'import sys, torch; sys.exit(None if torch.cuda.is_available() else "no GPU here")'
mapfile -t files < <(grep -rl --include='test_*.py' 'mark\.gpu' tests | sort)
{
    date -u '+%Y-%m-%d %H:%M UTC'
    echo "commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
    "$python" -c 'import torch; print(torch.cuda.get_device_name() + ", torch", torch.__version__)'
    "$python" -m pytest -m gpu -v --continue-on-collection-errors -p no:cacheprovider "${files[@]}"
} 2>&1 | tee "$record"
