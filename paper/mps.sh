# Sourced by the scripts beside it: lets the kernels of several processes on one NVIDIA GPU run side by side, by MPS, which
# ends with the script. Where CUDA_MPS_PIPE_DIRECTORY is set, processes join the others of that MPS; without MPS, they
# take turns.
if [ -z "${CUDA_MPS_PIPE_DIRECTORY:-}" ] && command -v nvidia-cuda-mps-control > /dev/null; then
    pipes=$(mktemp -d)
    export CUDA_MPS_PIPE_DIRECTORY=$pipes CUDA_MPS_LOG_DIRECTORY=$pipes
    nvidia-cuda-mps-control -d && trap 'echo quit | nvidia-cuda-mps-control; rm -rf "$pipes"' EXIT
    if ! python3 -c "import torch; torch.zeros(1, device='cuda')"; then # a container may not let it work
        echo quit | nvidia-cuda-mps-control
        unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
        trap - EXIT
        echo "MPS does not work here: the processes take turns" >&2
    fi
fi
