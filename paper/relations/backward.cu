// The gradients of forward.cu: a block visits the nodes of its network from the last to the first.
//
// It writes the gradients of the factors of the products; the gradients of the matrices are computed from them elsewhere.

#include "lanes.cuh"

// The gradients of the final relations, each of which was written to two places.
__device__ inline void begin_back(float *gradients, const float *upper, int most) {
    for (int place = threadIdx.x; place < WIRES * WIRES * C; place += THREADS) {
        const int a = place / C / WIRES, b = place / C % WIRES, c = place % C;
        if (a < b) continue;
        float both = a < most ? upper[(a * most + b) * C + c] : 0.0f;
        if (a < most && a != b) both += upper[(b * most + a) * C + c];
        gradients[pair_of(a, b) * STATE_STEP + c] = both;
    }
}

// The lane's part of the updated relations of a node, computed again, and of their gradients.
struct Lines {
    float raw[2][4], above[2][4], opened[2][4], moved[2][4];

    __device__ Lines(Moments<4> &moments, const float *gradients, const float *before, const Half *changes, const Half *shift,
                     const Lane &lane, const Node &node, int most) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int k = lane.row(half);
            const bool written = k < most && !(lane.line && k == node.i);
            const float *gradient = gradients + pair_of(wire_of(lane, node), k) * STATE_STEP;
            const float *was = before + (k * 2 + lane.line) * C;
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int tile = e / 2, odd = e % 2, channel = lane.channel(tile) + odd;
                const Half *row = changes + k * INNER;
                const Change change(k < most ? word(row + lane.change(tile)) : 0,
                                    k < most ? word(row + lane.change(tile + 2)) : 0, shift, lane, tile);
                opened[half][e] = change.opened(odd), moved[half][e] = change.moved(odd);
                raw[half][e] = (k < most ? was[channel] : 0.0f) + opened[half][e] * moved[half][e];
                above[half][e] = written ? gradient[channel] : 0.0f;
            }
            moments.put(lane, k, raw[half], above[half]);
        }
    }

    // The gradients of R + σ(g) ⊙ u, which replace `raw`, and of the changes.
    __device__ void change_back(Half *changed, Half *of_changes, const Moments<4> &moments, const Lane &lane, int most) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int k = lane.row(half);
            float found[4], of_gate[4], of_update[4];
            moments.find(lane, k, found);
            const float scale = rsqrtf(found[1] + EPSILON), along = found[3] * scale;
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float after = (raw[half][e] - found[0]) * scale;
                raw[half][e] = (above[half][e] - found[2] - after * along) * scale;
                of_update[e] = raw[half][e] * opened[half][e];
                of_gate[e] = of_update[e] * moved[half][e] * (1.0f - opened[half][e]);
            }
#pragma unroll
            for (int tile = 0; tile < 4; tile++) {
                const float(&from)[4] = tile < 2 ? of_gate : of_update;
                const int e = tile % 2 * 2, n = lane.change(tile);
                const unsigned x = pack(from[e], from[e + 1]);
                word(changed + k * INNER_STEP + n) = x;
                if (k < most) word(of_changes + k * INNER + n) = x;
            }
        }
    }
};

// The gradients of the inner layer and, summed over all wires, of the drive.
__device__ inline void enter_back(Half *entered, Half *of_inner, Half *of_drive, const float (&sums)[4][4],
                                  const unsigned (&inner)[4][2], const Lane &lane, int most) {
#pragma unroll
    for (int tile = 0; tile < 4; tile++) {
        const int n = lane.inner(tile);
        float first = 0.0f, second = 0.0f;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int k = lane.row(half);
            const unsigned x = inner[tile][half];
            const unsigned y = pack(sums[tile][2 * half] * gelu_gradient(low(x)), sums[tile][2 * half + 1] * gelu_gradient(high(x)));
            word(entered + k * INNER_STEP + n) = y;
            if (k < most) word(of_inner + k * INNER + n) = y;
            first += low(y), second += high(y);
        }
        first = lanes_sum<4, 32>(first), second = lanes_sum<4, 32>(second);
        if (lane.group == 0) word(of_drive + n) = pack(first, second);
    }
}

// The gradients of the relations before the node. The relation between its two wires was used three times: among those of the
// first wire, among those of the second, and as R_ij; the last two are collected in `aside`.
__device__ inline void gather_back(float *gradients, float *aside, const Lines &lines, const float (&through)[3][4],
                                   const Lane &lane, const Node &node) {
#pragma unroll
    for (int odd = 0; odd < 2; odd++) {
        const float own = lanes_sum<4, 32>(through[2][odd] + through[2][odd + 2]);
        if (lane.group == 0) aside[lane.given(2) - 2 * C + odd] = own;
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int k = lane.row(half);
        float *below = lane.line && k == node.i ? aside + C : gradients + pair_of(wire_of(lane, node), k) * STATE_STEP;
#pragma unroll
        for (int e = 0; e < 4; e++)
            below[lane.channel(e / 2) + e % 2] = lines.raw[half][e] + through[e / 2][2 * half + e % 2];
    }
    __syncthreads();
    for (int c = threadIdx.x; c < C; c += THREADS)
        gradients[pair_of(node.i, node.j) * STATE_STEP + c] += aside[c] + aside[C + c];
}

// The gradients of the initial relations.
__device__ inline void finish_back(float *of_start, const float *gradients, int most) {
    for (int c = threadIdx.x; c < C; c += THREADS) {
        float same = 0.0f, other = 0.0f;
        for (int a = 0; a < most; a++)
            for (int b = 0; b <= a; b++) (a == b ? same : other) += gradients[pair_of(a, b) * STATE_STEP + c];
        of_start[c] = other, of_start[C + c] = same;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) relation_steps_backward(
    const float *upper, const float *before, const Half *inner, const Half *changes, const Half *enter_weights,
    const Half *change, const Half *shift, const long long *wires, const long long *first, const long long *sizes,
    const long long *order, float *of_start, Half *of_inner, Half *of_changes, Half *of_drive, int networks, int rows,
    int most) {
    alignas(16) __shared__ float gradients[PAIRS * STATE_STEP], aside[2 * C];
    alignas(16) __shared__ Half changed[WIRES * INNER_STEP], entered[WIRES * INNER_STEP];
    __shared__ Moments<4> moments;
    const Lane lane;
    const Matrix<INNER, 4> changing(change, INNER, 1, lane.inners(), lane);
    const Matrix<INNER, 3> entering(enter_weights, GIVEN, 1, lane.givens(), lane);
    const long long network = order[blockIdx.x];
    begin_back(gradients, upper + network * most * most * C, most);
    __syncthreads();
    const long long from = first[network], last = from + sizes[network] - 1;
    Node next(last, wires);
    for (long long row = last; row >= from; row--) {
        const Node node = next;
        next = Node(row > from ? row - 1 : row, wires);
        const long long place = row * most * INNER;
        unsigned given[4][2];
#pragma unroll
        for (int tile = 0; tile < 4; tile++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int k = lane.row(half);
                given[tile][half] = k < most ? word(inner + place + k * INNER + lane.inner(tile)) : 0;
            }
        float sums[4][4], through[3][4];
        Lines lines(moments, gradients, before + node.row * most * 2 * C, changes + place, shift, lane, node, most);
        __syncthreads();
        lines.change_back(changed, of_changes + place, moments, lane, most);
        __syncthreads();
        changing.times(sums, changed, INNER_STEP, lane);
        enter_back(entered, of_inner + place, of_drive + node.row * INNER, sums, given, lane, most);
        __syncthreads();
        entering.times(through, entered, INNER_STEP, lane);
        gather_back(gradients, aside, lines, through, lane, node);
        __syncthreads();
    }
    finish_back(of_start + network * 2LL * C, gradients, most);
    for (long long row = first[networks - 1] + sizes[networks - 1] + blockIdx.x; row < rows; row += networks) {  // padding
        clear(of_inner + row * most * INNER, most * INNER), clear(of_changes + row * most * INNER, most * INNER);
        clear(of_drive + row * INNER, INNER);
    }
}
