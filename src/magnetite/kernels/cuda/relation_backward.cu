// The slopes of relation_forward.cu: a block walks the nodes of its network from the last to the first.
//
// It writes slopes of what went into the products; their sums over all nodes, the slopes of the matrices, are left to others.

#include "relation_lanes.cuh"

// The slopes of what any two wires have to do with each other in the end; it stood in two places.
__device__ inline void begin_back(float *slopes, const float *upper, int room) {
    for (int place = threadIdx.x; place < WIRES * WIRES * C; place += THREADS) {
        const int a = place / C / WIRES, b = place / C % WIRES, c = place % C;
        if (a < b) continue;
        float both = a < room ? upper[(a * room + b) * C + c] : 0.0f;
        if (a < room && a != b) both += upper[(b * room + a) * C + c];
        slopes[pair_of(a, b) * STATE_STEP + c] = both;
    }
}

// What a lane has of the changed lines of a node, again, and of their slopes.
struct Lines {
    float raw[2][4], above[2][4], opened[2][4], moved[2][4];

    __device__ Lines(Moments<4> &moments, const float *slopes, const float *before, const Half *changes, const Half *shift,
                     const Lane &lane, const Node &node, int room) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int k = lane.row(half);
            const bool told = k < room && !(lane.line && k == node.i);
            const float *slope = slopes + pair_of(wire_of(lane, node), k) * STATE_STEP;
            const float *was = before + (k * 2 + lane.line) * C;
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int tile = e / 2, odd = e % 2, channel = lane.channel(tile) + odd;
                const Half *row = changes + k * INNER;
                const Change change(k < room ? word(row + lane.change(tile)) : 0,
                                    k < room ? word(row + lane.change(tile + 2)) : 0, shift, lane, tile);
                opened[half][e] = change.opened(odd), moved[half][e] = change.moved(odd);
                raw[half][e] = (k < room ? was[channel] : 0.0f) + opened[half][e] * moved[half][e];
                above[half][e] = told ? slope[channel] : 0.0f;
            }
            moments.put(lane, k, raw[half], above[half]);
        }
    }

    // The slopes of R + σ(g) ⊙ u, in the place of `raw`, and those of the changes.
    __device__ void change_back(Half *changed, Half *of_changes, const Moments<4> &moments, const Lane &lane, int room) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int k = lane.row(half);
            float found[4], of_gate[4], of_update[4];
            moments.find(lane, k, found);
            const float scale = rsqrtf(found[1] + SMALLEST), along = found[3] * scale;
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
                if (k < room) word(of_changes + k * INNER + n) = x;
            }
        }
    }
};

// The slopes of the inner layer and, summed over all wires, of the drive.
__device__ inline void enter_back(Half *entered, Half *of_inner, Half *of_drive, const float (&sums)[4][4],
                                  const unsigned (&inner)[4][2], const Lane &lane, int room) {
#pragma unroll
    for (int tile = 0; tile < 4; tile++) {
        const int n = lane.inner(tile);
        float first = 0.0f, second = 0.0f;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int k = lane.row(half);
            const unsigned x = inner[tile][half];
            const unsigned y = pack(sums[tile][2 * half] * gelu_slope(low(x)), sums[tile][2 * half + 1] * gelu_slope(high(x)));
            word(entered + k * INNER_STEP + n) = y;
            if (k < room) word(of_inner + k * INNER + n) = y;
            first += low(y), second += high(y);
        }
        first = lanes_sum<4, 32>(first), second = lanes_sum<4, 32>(second);
        if (lane.group == 0) word(of_drive + n) = pack(first, second);
    }
}

// The slopes of the lines as they came in. What the two wires have to do with each other came in three times: in the line
// of the first wire, in that of the second, and beside all lines; the last two wait in `aside`.
__device__ inline void gather_back(float *slopes, float *aside, const Lines &lines, const float (&through)[3][4],
                                   const Lane &lane, const Node &node) {
#pragma unroll
    for (int odd = 0; odd < 2; odd++) {
        const float own = lanes_sum<4, 32>(through[2][odd] + through[2][odd + 2]);
        if (lane.group == 0) aside[lane.given(2) - 2 * C + odd] = own;
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int k = lane.row(half);
        float *below = lane.line && k == node.i ? aside + C : slopes + pair_of(wire_of(lane, node), k) * STATE_STEP;
#pragma unroll
        for (int e = 0; e < 4; e++)
            below[lane.channel(e / 2) + e % 2] = lines.raw[half][e] + through[e / 2][2 * half + e % 2];
    }
    __syncthreads();
    for (int c = threadIdx.x; c < C; c += THREADS)
        slopes[pair_of(node.i, node.j) * STATE_STEP + c] += aside[c] + aside[C + c];
}

// The slopes of how all states began.
__device__ inline void finish_back(float *of_start, const float *slopes, int room) {
    for (int c = threadIdx.x; c < C; c += THREADS) {
        float same = 0.0f, other = 0.0f;
        for (int a = 0; a < room; a++)
            for (int b = 0; b <= a; b++) (a == b ? same : other) += slopes[pair_of(a, b) * STATE_STEP + c];
        of_start[c] = other, of_start[C + c] = same;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) relation_steps_backward(
    const float *upper, const float *before, const Half *inner, const Half *changes, const Half *enter_weights,
    const Half *change, const Half *shift, const long long *wires, const bool *live, const long long *starts,
    const long long *slots, float *of_start, Half *of_inner, Half *of_changes, Half *of_drive, int, int room) {
    alignas(16) __shared__ float slopes[PAIRS * STATE_STEP], aside[2 * C];
    alignas(16) __shared__ Half changed[WIRES * INNER_STEP], entered[WIRES * INNER_STEP];
    __shared__ Moments<4> moments;
    const Lane lane;
    const Matrix<INNER, 4> changing(change, INNER, 1, lane.inners(), lane);
    const Matrix<INNER, 3> entering(enter_weights, GIVEN, 1, lane.givens(), lane);
    const int network = blockIdx.x;
    begin_back(slopes, upper + (long long)network * room * room * C, room);
    __syncthreads();
    const int last = (int)slots[network] - 1;
    Node next(last, network, wires, live, starts);
    for (int step = last; step >= 0; step--) {
        const Node node = next;
        next = Node(max(step - 1, 0), network, wires, live, starts);
        const long long rows = node.row * room * INNER;
        if (!node.live) {
            clear(of_inner + rows, room * INNER), clear(of_changes + rows, room * INNER);
            clear(of_drive + node.row * INNER, INNER);
            continue;
        }
        unsigned given[4][2];
#pragma unroll
        for (int tile = 0; tile < 4; tile++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int k = lane.row(half);
                given[tile][half] = k < room ? word(inner + rows + k * INNER + lane.inner(tile)) : 0;
            }
        float sums[4][4], through[3][4];
        Lines lines(moments, slopes, before + node.row * room * 2 * C, changes + rows, shift, lane, node, room);
        __syncthreads();
        lines.change_back(changed, of_changes + rows, moments, lane, room);
        __syncthreads();
        changing.times(sums, changed, INNER_STEP, lane);
        enter_back(entered, of_inner + rows, of_drive + node.row * INNER, sums, given, lane, room);
        __syncthreads();
        entering.times(through, entered, INNER_STEP, lane);
        gather_back(slopes, aside, lines, through, lane, node);
        __syncthreads();
    }
    finish_back(of_start + network * 2LL * C, slopes, room);
}
