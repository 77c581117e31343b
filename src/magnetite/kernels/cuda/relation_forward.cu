// What any two wires of a network have to do with each other, changed node by node: all steps of a network in one block.
//
// What the slopes need is written for every node.

#include "relation_lanes.cuh"

// At first all states are start[0], those of a wire with itself start[1].
__device__ inline void begin(float *states, const float *start) {
    for (int place = threadIdx.x; place < WIRES * WIRES * C; place += THREADS) {
        const int a = place / C / WIRES, b = place / C % WIRES, c = place % C;
        if (a >= b) states[pair_of(a, b) * STATE_STEP + c] = start[(a == b) * C + c];
    }
}

// [R_ik, R_jk, R_ij] of every wire k for the product, and the first two as they are for the slopes.
__device__ inline void gather(Half *given, float *before, const float *states, const Node &node, int room) {
    for (int place = threadIdx.x; place < WIRES * GIVEN / 2; place += THREADS) {
        const int k = place / (GIVEN / 2), n = place % (GIVEN / 2) * 2, which = n / C;
        const int pair = pair_of(which == 1 ? node.j : node.i, which == 2 ? node.j : k);
        const float *from = states + pair * STATE_STEP + n % C;
        word(given + k * GIVEN_STEP + n) = pack(from[0], from[1]);
        if (which < 2 && k < room) *reinterpret_cast<float2 *>(before + k * 2 * C + n) = float2{from[0], from[1]};
    }
}

// The inner layer, x = sums + drive + kind_k, and what it is bent to.
__device__ inline void enter(Half *bent, Half *inner, const float (&sums)[4][4], const unsigned (&drive)[4],
                             const Half *kinds, const Lane &lane, const Node &node, int room) {
#pragma unroll
    for (int tile = 0; tile < 4; tile++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int k = lane.row(half), n = lane.inner(tile);
            const unsigned kind = word(kinds + kind_of(k, node.i, node.j) * INNER + n);
            const unsigned x = pack(sums[tile][2 * half] + low(drive[tile]) + low(kind),
                                    sums[tile][2 * half + 1] + high(drive[tile]) + high(kind));
            if (k < room) word(inner + k * INNER + n) = x;
            word(bent + k * INNER_STEP + n) = pack(low(x) * share_below(low(x)), high(x) * share_below(high(x)));
        }
}

// R + σ(g) ⊙ u, the lane's part of it, and its moments.
__device__ inline void change_lines(float (&raw)[2][4], Moments<2> &moments, Half *changes, const float (&sums)[4][4],
                                    const float *states, const Half *shift, const Lane &lane, const Node &node, int room) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int k = lane.row(half);
#pragma unroll
        for (int tile = 0; tile < 2; tile++) {
            const Change change(pack(sums[tile][2 * half], sums[tile][2 * half + 1]),
                                pack(sums[tile + 2][2 * half], sums[tile + 2][2 * half + 1]), shift, lane, tile);
            if (k < room) {
                word(changes + k * INNER + lane.change(tile)) = change.gate;
                word(changes + k * INNER + lane.change(tile + 2)) = change.update;
            }
            const float *was = states + pair_of(wire_of(lane, node), k) * STATE_STEP + lane.channel(tile);
#pragma unroll
            for (int odd = 0; odd < 2; odd++)
                raw[half][2 * tile + odd] = was[odd] + change.opened(odd) * change.moved(odd);
        }
        moments.put(lane, k, raw[half], raw[half]);
    }
}

// The lines as they are from now on; what the two wires have to do with each other is told once.
__device__ inline void settle(float *states, const float (&raw)[2][4], const Moments<2> &moments, const Lane &lane,
                              const Node &node) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int k = lane.row(half);
        float found[2];
        moments.find(lane, k, found);
        const float scale = rsqrtf(found[1] + SMALLEST);
        if (lane.line && k == node.i) continue;
        float *now = states + pair_of(wire_of(lane, node), k) * STATE_STEP;
#pragma unroll
        for (int e = 0; e < 4; e++) now[lane.channel(e / 2) + e % 2] = (raw[half][e] - found[0]) * scale;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) relation_steps_forward(
    const float *start, const Half *drive, const Half *kinds, const Half *enter_weights, const Half *change,
    const Half *shift, const long long *wires, const bool *live, const long long *starts, const long long *slots,
    float *states_out, float *before, Half *inner, Half *changes, int, int room) {
    alignas(16) __shared__ float states[PAIRS * STATE_STEP];
    alignas(16) __shared__ Half given[WIRES * GIVEN_STEP], bent[WIRES * INNER_STEP];
    __shared__ Moments<2> moments;
    const Lane lane;
    const Matrix<GIVEN, 4> entering(enter_weights, 1, GIVEN, lane.inners(), lane);
    const Matrix<INNER, 4> changing(change, 1, INNER, lane.changes(), lane);
    const int network = blockIdx.x;
    begin(states, start);
    __syncthreads();
    const int count = slots[network];
    Node next(0, network, wires, live, starts);
    for (int step = 0; step < count; step++) {
        const Node node = next;
        next = Node(min(step + 1, count - 1), network, wires, live, starts);
        float *lines_before = before + node.row * room * 2 * C;
        Half *inner_rows = inner + node.row * room * INNER, *change_rows = changes + node.row * room * INNER;
        if (!node.live) {
            clear(lines_before, room * 2 * C), clear(inner_rows, room * INNER), clear(change_rows, room * INNER);
            continue;
        }
        unsigned driven[4];
#pragma unroll
        for (int tile = 0; tile < 4; tile++) driven[tile] = word(drive + node.row * INNER + lane.inner(tile));
        float sums[4][4], raw[2][4];
        gather(given, lines_before, states, node, room);
        __syncthreads();
        entering.times(sums, given, GIVEN_STEP, lane);
        enter(bent, inner_rows, sums, driven, kinds, lane, node, room);
        __syncthreads();
        changing.times(sums, bent, INNER_STEP, lane);
        change_lines(raw, moments, change_rows, sums, states, shift, lane, node, room);
        __syncthreads();
        settle(states, raw, moments, lane, node);
        __syncthreads();
    }
    float *out = states_out + (long long)network * room * room * C;
    for (int place = threadIdx.x; place < room * room * C; place += THREADS)
        out[place] = states[pair_of(place / C / room, place / C % room) * STATE_STEP + place % C];
}
