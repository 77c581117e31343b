#!/usr/bin/env bash
# Train cells of figures in several processes on one machine; run it in the root of a clone:
#
#   paper/series.sh FOLDER PROCESSES figure-sorting:sorting-walks figure-playground …
#
# Each process goes through all figures in this order and skips cells that another process is training. Figures that
# fail, for example because GPU memory is full, are tried again at the end. Results go to FOLDER/results, output to
# FOLDER/*.log. Ctrl-C saves and stops all processes; the same command continues. BUDGET, if set, is the fraction of each
# training to do.
set -um # one process group per process, so that its children are stopped with it
if [ $# -lt 3 ]; then
    echo "usage: $0 FOLDER PROCESSES FIGURE[:CELL]…" >&2
    exit 2
fi
folder=$1 processes=$2
shift 2
workers=() status=0
mkdir -p "$folder"
. "$(dirname "$0")/mps.sh"
stop() {
    trap '' INT TERM
    for worker in "${workers[@]}"; do kill -TERM -- "-$worker" 2> /dev/null; done
    wait
    exit 130
}
trap stop INT TERM
train() {
    local figure=${1%%:*} only=${1#"${1%%:*}"}
    python3 -m paper "$figure" --only "${only#:}" --out "$folder/results" --runs "$folder/runs" ${BUDGET:+--budget "$BUDGET"}
}
work() {
    local item failed=() stopped=0 status=0
    trap 'stopped=1' TERM # runs when the training has saved and ended
    for item in "$@"; do
        train "$item" || failed+=("$item")
        [ $stopped = 0 ] || return 130
    done
    for item in "${failed[@]}"; do
        train "$item" || status=1
        [ $stopped = 0 ] || return 130
    done
    return $status
}
for process in $(seq "$processes"); do
    work "$@" > "$folder/process-$process.log" 2>&1 &
    workers+=($!)
done
for worker in "${workers[@]}"; do wait "$worker" || status=1; done
ls "$folder/results/cells"
exit $status
