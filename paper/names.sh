#!/usr/bin/env bash
# Train every row of the table of function names on one GPU, and measure robustness; run it in the root of a clone:
#
#   paper/names.sh corpus.xz FOLDER [OPTION OF train-code…]
#
# corpus.xz is what `python -m paper pack-code` wrote. Rows of the claim have three seeds, and all rows a learning rate of
# two, chosen in validation. Results go to FOLDER/results, runs and logs to FOLDER/runs; the same command continues.
set -eu
if [ $# -lt 2 ]; then
    echo "usage: $0 corpus.xz FOLDER [OPTION OF train-code…]" >&2
    exit 2
fi
pack=$1 folder=$2
shift 2
. "$(dirname "$0")/mps.sh"
mkdir -p "$folder"
corpus=$folder/corpus
[ -d "$corpus" ] || python3 -m paper unpack-code "$pack" "$corpus"
train() {
    local rows=$1 seeds=$2 side=$3
    shift 3
    python3 -m paper train-code --data "$corpus" --rows "$rows" --seeds "$seeds" --side "$side" --rates 1e-3,2e-3 \
        --epochs 2.5 --runs "$folder/runs" --out "$folder/results" --set task.copied=true --set task.shared=true \
        --set task.words=8000 --set task.attributes=8000 --set task.subwords=12000 --set task.embedding_std=0.1 \
        --set model.position_scale=0.1 --set "optim.betas=[0.9,0.98]" --set optim.warmup=0.2 \
        --set run.evaluate_every=9 --set "data.cache=$folder/encodings" "$@"
}
claim=sat,sat++,dataflow,dataflow-magnetic
train "$claim,tokens,sat++-no-gnn" 0 6 "$@"
train "$claim" 1,2 4 "$@" &
others=$!
train sat-no-gnn,dataflow-magnetic-mlp,dataflow-walks,dataflow-multi-q,best,sequential-magnetic 0 2 "$@" &
rest=$!
wait $others
train sequential-magnetic 1,2 2 "$@"
python3 -m paper robustness-code --data "$corpus" --runs "$folder/runs" --out "$folder/results" --device cuda
wait $rest
