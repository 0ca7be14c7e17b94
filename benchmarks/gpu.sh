#!/usr/bin/env bash
# Everything that docs/performance.md says of a GPU, in one run: kernels, prediction beside its peers, a
# folder of frames, a training step.
#
#     benchmarks/gpu.sh OUT
#
# OUT gets a file for each part as soon as it is measured: a run that is cut off keeps what it has. About
# ten minutes, three of them for torchvision under torch.compile. Exits with 1 if a part failed or missed
# its bound.
set -uo pipefail

if [ $# -ne 1 ]; then
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
python=${PYTHON:-python3}
export PYTHONPATH="$here/../src${PYTHONPATH:+:$PYTHONPATH}"
code=0
part() {
    name=$1
    shift
    echo "== $name"
    "$@" 2>&1 | tee "$out/$name.txt" || code=1
}
part folder "$python" "$here/folder.py" -o "$out/folder.json"
part step "$python" "$here/training_step.py" -o "$out/step.json"
part inference "$here/inference.sh" "$out"
part kernels "$python" "$here/kernels.py" -o "$out/kernels.json"
exit $code
