#!/usr/bin/env bash
# Trains cells of figures in several processes that share a machine:
#
#   experiments/series.sh FOLDER PROCESSES figure-sorting:sorting-walks figure-playground …
#
# Each process does all of the figures in this order, and leaves cells alone that another is training. What failed, as
# when the others had filled the GPU, is tried once more at the end. Results go to FOLDER/results, what was printed to
# FOLDER/*.log. A series that was stopped goes on where it stood. On NVIDIA GPUs, MPS lets the kernels of all processes
# run side by side, where it is installed; otherwise they take turns.
set -u
folder=$1 processes=$2
shift 2
workers=()
mkdir -p "$folder"
if command -v nvidia-cuda-mps-control > /dev/null; then
    pipes=$(mktemp -d)
    export CUDA_MPS_PIPE_DIRECTORY=$pipes CUDA_MPS_LOG_DIRECTORY=$pipes
    nvidia-cuda-mps-control -d && trap 'echo quit | nvidia-cuda-mps-control; rm -rf "$pipes"' EXIT
fi
work() {
    for item in "$@" "$@"; do
        figure=${item%%:*} only=${item#"${item%%:*}"}
        python3 -m magnetite reproduce "$figure" --only "${only#:}" --out "$folder/results" --runs "$folder/runs"
    done
}
for process in $(seq "$processes"); do
    work "$@" > "$folder/process-$process.log" 2>&1 &
    workers+=($!)
done
wait "${workers[@]}"
ls "$folder/results/cells"
