#!/usr/bin/env bash
# Patches against three networks, and the curves of all three under illumination, noise and patches.
#
#     benchmarks/robustness.sh WEIGHTS PAIRS OUT
#
# WEIGHTS: the published raft-small.pth; our own two come with the package
# PAIRS:   real pairs, as benchmarks/portable_pairs.py writes them: its pairs.txt, or any dataset
# OUT:     a folder; patches/, moderate/, test/, benchmark/ and real/ are made in it
#
# Variables: LCV (how `lcv` is called), DEVICE, STEPS, START and RECIPE of learning, PAIRS_OF_CURVES,
# PAIRS_OF_TEST; MORE, further networks as in "ddflow=a.safetensors vcn-small=b.safetensors", which are
# attacked and tested too; PATCHES_ONLY or MEASURES_ONLY, not empty, for one half of the work. Names
# of weights are without spaces.
# The test is in OUT/test: diameter 100, 200 `moderate` pairs of their own, all networks and patches.
# The curves, in OUT/benchmark and OUT/real, have the patch against `raft-small` and three networks.
set -euo pipefail

if [ $# -ne 3 ]; then
    sed -n '2,15s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
weights=$1 pairs=$2 out=$3
read -r -a lcv <<<"${LCV:-python3 -m lcv.cli.main}"
device=${DEVICE:-cuda}
steps=${STEPS:-1500}

# Now, and not after an hour: what is missing.
inputs=("$weights")
for more in ${MORE:-}; do inputs+=("${more#*=}"); done
[ -n "${PATCHES_ONLY:-}" ] || inputs+=("$pairs")
for input in "${inputs[@]}"; do
    [ -e "$input" ] || { echo "$0: $input: there is no such file or folder" >&2; exit 2; }
done

declare -A words_of=(
    [published]="--model raft-small --weights $weights"
    [lcv]="--model raft-small"
    [vanilla]="--model raft-small-vanilla"
)
names=(published lcv vanilla)
for more in ${MORE:-}; do
    names+=("${more%%=*}")
    words_of[${more%%=*}]="--model ${more%%=*} --weights ${more#*=}"
done
networks=() three=() patches=()
for name in "${names[@]}"; do
    read -r -a words <<<"${words_of[$name]}"
    networks+=("${words[@]}")
    patches+=("$out/patches/$name.png")
    [ ${#patches[@]} -gt 3 ] || three+=("${words[@]}")
done

# Wait for every process given, and fail if one of them did.
all_of() {
    local failed=0
    for job in "$@"; do wait "$job" || failed=1; done
    return $failed
}

mkdir -p "$out/patches"
learn() {
    local name=$1 words
    read -r -a words <<<"${words_of[$name]}"
    words+=(--steps "$steps" --recipe "${RECIPE:-moderate}" --start "${START:-checks}")
    words+=(--device "$device" --overwrite -o "$out/patches/$name.png")
    # Should recording fail on this device, learn without it.
    { [[ $device == cuda* ]] && "${lcv[@]}" robust learn "${words[@]}" --graph ||
        "${lcv[@]}" robust learn "${words[@]}"; } >"$out/patches/$name.log" 2>&1
}
if [ -z "${MEASURES_ONLY:-}" ]; then
    # Side by side, so that the device need not wait for one process on the host.
    learning=()
    for name in "${names[@]}"; do
        learn "$name" &
        learning+=($!)
    done
    all_of "${learning[@]}" || { tail -n 3 "$out"/patches/*.log >&2; exit 1; }
    tail -qn 1 "$out"/patches/*.log
    echo "patches: $SECONDS s"
fi
[ -n "${PATCHES_ONLY:-}" ] && exit 0

# Pairs of the test, of a seed that nothing else uses; the list is there once all of them are.
count=${PAIRS_OF_TEST:-200}
test_pairs=$out/moderate/pairs.txt
if [ ! -f "$test_pairs" ] || [ "$(wc -l <"$test_pairs")" -ne "$count" ]; then
    "${lcv[@]}" data make "$out/moderate" --recipe moderate --seed 77 --count "$count" \
        --device "$device" --overwrite
    for ((i = 0; i < count; i++)); do
        printf -v scene 'scene_%06d' "$i"
        echo "training/final/$scene/frame_000"{1,2}.png "training/flow/$scene/frame_0001.flo"
    done >"$test_pairs.part"
    mv "$test_pairs.part" "$test_pairs"
fi

measure() {
    local name=$1
    shift
    mkdir -p "$out/$name"
    "${lcv[@]}" robust "$@" --device "$device" -o "$out/$name" >"$out/$name/log.txt" 2>&1
}
against_lcv=("${three[@]}" --patch "$out/patches/lcv.png")
curves=(--stress gamma noise-variance noise-deviation patch random matched --levels matched=100)
measuring=()
measure test "${networks[@]}" --patch "${patches[@]}" --data "moderate=$test_pairs" --batch 20 \
    --stress patch random matched --levels patch=100 &
measuring+=($!)
measure benchmark "${against_lcv[@]}" --data benchmark --limit "${PAIRS_OF_CURVES:-200}" --batch 20 \
    "${curves[@]}" &
measuring+=($!)
measure real "${against_lcv[@]}" --data "real=$pairs" --batch 4 "${curves[@]}" &
measuring+=($!)
all_of "${measuring[@]}" ||
    { tail -n 3 "$out"/{test,benchmark,real}/log.txt >&2; exit 1; }
echo "with measurements: $SECONDS s"
for name in test benchmark; do sed -n '/^## Harm/,$p' "$out/$name/robustness.md"; done
