// The earliest parallel step of each node in which both of its wires are free, for networks of at most WIRES wires.
//
// One thread per network. Compiled at run time with WIRES.

extern "C" __global__ void parallel_steps(const long long *wires, const long long *first, const long long *sizes,
                                          const long long *order, long long *found, int networks) {
    for (int place = blockIdx.x * 32 + threadIdx.x; place < networks; place += gridDim.x * 32) {
        const long long network = order[place], end = first[network] + sizes[network];
        int free[WIRES] = {};
        for (long long node = first[network]; node < end; node++) {
            int &one = free[wires[2 * node]], &other = free[wires[2 * node + 1]];
            const int now = one > other ? one : other;
            one = other = now + 1;
            found[node] = now;
        }
    }
}
