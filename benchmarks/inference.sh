#!/usr/bin/env bash
# RAFT on a GPU beside torchvision's and ptlflow's, and how cost grows: JSON and, with matplotlib, plots.
#
#     benchmarks/inference.sh OUT [more options of lcv bench]
#
# OUT: a folder for large.*, larger.*, small.* and growth.*
# Variables: LCV (how `lcv` is called), DEVICE. At 440×1024 the peers run under torch.compile too, which
# takes three minutes; further options are not for growth. A row that fails is in the tables, and
# the exit code is then 1.
set -uo pipefail

if [ $# -lt 1 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
out=$1
shift
mkdir -p "$out"
read -r -a lcv <<<"${LCV:-python3 -m lcv.cli.main}"
code=0
measure() {
    name=$1
    shift
    "${lcv[@]}" bench --device "${DEVICE:-cuda}" -o "$out/$name.json" --plot "$out/$name.png" "$@" || code=1
}
measure large --model raft-large --size 440x1024@32 --compiled "$@"
measure larger --model raft-large --size 376x1248@24 1088x1920@20 "$@"
measure small --model raft-small --size 440x1024@32 "$@"
measure growth --model raft-large --growth
exit $code
