// The parallel step of each node of networks of at most WIRES wires, the earliest that its two wires allow.
//
// One thread a network. Compiled at run time with WIRES.

extern "C" __global__ void parallel_steps(const long long *wires, const bool *live, const long long *starts,
                                          const long long *slots, long long *found, int networks, int last) {
    for (int network = blockIdx.x * 32 + threadIdx.x; network < networks; network += gridDim.x * 32) {
        int open[WIRES] = {};
        for (int step = 0; step < slots[network]; step++) {
            const long long node = starts[step] + network;
            int now = last;
            if (live[node]) {
                int &first = open[wires[2 * node]], &second = open[wires[2 * node + 1]];
                now = first > second ? first : second;
                first = second = now + 1;
            }
            found[node] = now;
        }
    }
}
