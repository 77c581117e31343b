// Relations of any two wires of a network, updated node by node: all steps of a network in one block.
//
// For every node, the tensors that the gradients need are written.

#include "lanes.cuh"

// Initially all relations are start[0], those of a wire to itself start[1].
__device__ inline void begin(float *states, const float *start) {
    for (int place = threadIdx.x; place < WIRES * WIRES * C; place += THREADS) {
        const int a = place / C / WIRES, b = place / C % WIRES, c = place % C;
        if (a >= b) states[pair_of(a, b) * STATE_STEP + c] = start[(a == b) * C + c];
    }
}

// [R_ik, R_jk, R_ij] for every wire k for the product; the first two are kept for the gradients.
__device__ inline void gather(Half *given, float *before, const float *states, const Node &node, int most) {
    for (int place = threadIdx.x; place < WIRES * GIVEN / 2; place += THREADS) {
        const int k = place / (GIVEN / 2), n = place % (GIVEN / 2) * 2, which = n / C;
        const int pair = pair_of(which == 1 ? node.j : node.i, which == 2 ? node.j : k);
        const float *from = states + pair * STATE_STEP + n % C;
        word(given + k * GIVEN_STEP + n) = pack(from[0], from[1]);
        if (which < 2 && k < most) *reinterpret_cast<float2 *>(before + k * 2 * C + n) = float2{from[0], from[1]};
    }
}

// The inner layer x = sums + drive + kind_k, and gelu(x).
__device__ inline void enter(Half *bent, Half *inner, const float (&sums)[4][4], const unsigned (&drive)[4],
                             const Half *kinds, const Lane &lane, const Node &node, int most) {
#pragma unroll
    for (int tile = 0; tile < 4; tile++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int k = lane.row(half), n = lane.inner(tile);
            const unsigned kind = word(kinds + kind_of(k, node.i, node.j) * INNER + n);
            const unsigned x = pack(sums[tile][2 * half] + low(drive[tile]) + low(kind),
                                    sums[tile][2 * half + 1] + high(drive[tile]) + high(kind));
            if (k < most) word(inner + k * INNER + n) = x;
            word(bent + k * INNER_STEP + n) = pack(low(x) * normal_cdf(low(x)), high(x) * normal_cdf(high(x)));
        }
}

// The lane's part of R + σ(g) ⊙ u, and its moments.
__device__ inline void change_lines(float (&raw)[2][4], Moments<2> &moments, Half *changes, const float (&sums)[4][4],
                                    const float *states, const Half *shift, const Lane &lane, const Node &node, int most) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int k = lane.row(half);
#pragma unroll
        for (int tile = 0; tile < 2; tile++) {
            const Change change(pack(sums[tile][2 * half], sums[tile][2 * half + 1]),
                                pack(sums[tile + 2][2 * half], sums[tile + 2][2 * half + 1]), shift, lane, tile);
            if (k < most) {
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

// Write the normalised relations; the relation between the two wires is written once.
__device__ inline void settle(float *states, const float (&raw)[2][4], const Moments<2> &moments, const Lane &lane,
                              const Node &node) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int k = lane.row(half);
        float found[2];
        moments.find(lane, k, found);
        const float scale = rsqrtf(found[1] + EPSILON);
        if (lane.line && k == node.i) continue;
        float *now = states + pair_of(wire_of(lane, node), k) * STATE_STEP;
#pragma unroll
        for (int e = 0; e < 4; e++) now[lane.channel(e / 2) + e % 2] = (raw[half][e] - found[0]) * scale;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) relation_steps_forward(
    const float *start, const Half *drive, const Half *kinds, const Half *enter_weights, const Half *change,
    const Half *shift, const long long *wires, const long long *first, const long long *sizes, const long long *order,
    float *states_out, float *before, Half *inner, Half *changes, int networks, int rows, int most) {
    alignas(16) __shared__ float states[PAIRS * STATE_STEP];
    alignas(16) __shared__ Half given[WIRES * GIVEN_STEP], bent[WIRES * INNER_STEP];
    __shared__ Moments<2> moments;
    const Lane lane;
    const Matrix<GIVEN, 4> entering(enter_weights, 1, GIVEN, lane.inners(), lane);
    const Matrix<INNER, 4> changing(change, 1, INNER, lane.changes(), lane);
    const long long network = order[blockIdx.x];
    begin(states, start);
    __syncthreads();
    const long long from = first[network], end = from + sizes[network];
    Node next(from, wires);
    for (long long row = from; row < end; row++) {
        const Node node = next;
        next = Node(row + 1 < end ? row + 1 : row, wires);
        float *lines_before = before + node.row * most * 2 * C;
        Half *inner_rows = inner + node.row * most * INNER, *change_rows = changes + node.row * most * INNER;
        unsigned driven[4];
#pragma unroll
        for (int tile = 0; tile < 4; tile++) driven[tile] = word(drive + node.row * INNER + lane.inner(tile));
        float sums[4][4], raw[2][4];
        gather(given, lines_before, states, node, most);
        __syncthreads();
        entering.times(sums, given, GIVEN_STEP, lane);
        enter(bent, inner_rows, sums, driven, kinds, lane, node, most);
        __syncthreads();
        changing.times(sums, bent, INNER_STEP, lane);
        change_lines(raw, moments, change_rows, sums, states, shift, lane, node, most);
        __syncthreads();
        settle(states, raw, moments, lane, node);
        __syncthreads();
    }
    float *out = states_out + network * most * most * C;
    for (int place = threadIdx.x; place < most * most * C; place += THREADS)
        out[place] = states[pair_of(place / C / most, place / C % most) * STATE_STEP + place % C];
    for (long long row = first[networks - 1] + sizes[networks - 1] + blockIdx.x; row < rows; row += networks) {  // padding
        clear(before + row * most * 2 * C, most * 2 * C);
        clear(inner + row * most * INNER, most * INNER), clear(changes + row * most * INNER, most * INNER);
    }
}
