// What any two wires of a network have to do with each other, changed node by node: all steps of a network in one block.
//
// States stay in shared memory, one vector for every two of at most 16 wires, and the matrices in registers: each warp has
// 32 of their columns. The 16 wires k of a step are the rows of products on tensor cores, in bfloat16 with sums in single
// precision. Forwards, what the slopes need is written for every node; backwards, a block walks its nodes from the last to
// the first, and writes slopes of what went into the products, whose sums over all nodes are left to others.
//
// Compiled at run time with STATE, 16 or 32 numbers a vector.

constexpr int C = STATE, GIVEN = 3 * C, INNER = 4 * C, WARPS = C / 8, PARTS = WARPS / 2;
constexpr int WIRES = 16, PAIRS = WIRES * (WIRES + 1) / 2, KINDS = 5;
constexpr int STATE_STEP = C + 4, GIVEN_STEP = GIVEN + 8, INNER_STEP = INNER + 8;  // more, against bank conflicts
constexpr float SMALLEST = 1e-5f;

typedef unsigned short Half;  // the bits of a bfloat16

#ifdef __CUDACC__
// Two numbers, rounded, in one word; the first in its lower half.
__device__ inline unsigned pack(float low, float high) {
    unsigned word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}
// sum += a · b, of 16 × 16 and 16 × 8 numbers.
__device__ inline void multiply_add(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

__device__ inline float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ inline float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }
__device__ inline float number(Half bits) { return low(bits); }
__device__ inline unsigned &word(Half *place) { return *reinterpret_cast<unsigned *>(place); }
__device__ inline unsigned word(const Half *place) { return *reinterpret_cast<const unsigned *>(place); }

__device__ inline int pair_of(int a, int b) { return a < b ? b * (b + 1) / 2 + a : a * (a + 1) / 2 + b; }
__device__ inline int kind_of(int k, int i, int j) { return (k >= i) + (k > i) + (k >= j) + (k > j); }
__device__ inline float opened_by(float gate) { return 1.0f / (1.0f + __expf(-gate)); }
__device__ inline float share_below(float x) { return 0.5f + 0.5f * erff(x * 0.70710678f); }
__device__ inline float gelu_slope(float x) { return share_below(x) + x * 0.39894228f * __expf(-0.5f * x * x); }

// The sum over four neighbouring lanes, which hold a row of a product; over all rows with FIRST = 4, END = 32.
template <int FIRST, int END> __device__ inline float lanes_sum(float value) {
#pragma unroll
    for (int other = FIRST; other < END; other *= 2) value += __shfl_xor_sync(~0u, value, other);
    return value;
}

// Where a thread stands. Of a product it has rows `row(0)` and `row(1)`, of each tile of 8 columns two, from `column` on.
// Beside that, each warp has 16 channels of the line of one of the two wires.
struct Lane {
    int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    int line = warp / PARTS, part = warp % PARTS;
    __device__ int row(int half) const { return group + 8 * half; }
    __device__ int channel(int tile) const { return part * 16 + tile * 8 + column; }  // of tiles 0 and 1
    __device__ int inner(int tile) const { return warp * 32 + tile * 8 + column; }
    __device__ int change(int tile) const { return line * 2 * C + tile / 2 * C + channel(tile % 2); }  // gates, updates
    __device__ int given(int tile) const { return tile < 2 ? line * C + channel(tile) : 2 * C + warp * 8 + column; }
};

// A matrix as the right side of products: MATRIX[k][n] lies at k · down + n · right; tiles begin at columns[tile].
template <int DEPTH, int TILES> struct Matrix {
    unsigned words[DEPTH / 16][TILES][2];

    __device__ Matrix(const Half *numbers, int down, int right, const int (&columns)[TILES], const Lane &lane) {
#pragma unroll
        for (int depth = 0; depth < DEPTH / 16; depth++)
#pragma unroll
            for (int tile = 0; tile < TILES; tile++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const int k = 16 * depth + 8 * half + lane.column, n = columns[tile] - lane.column + lane.group;
                    const Half *place = numbers + k * down + n * right;
                    words[depth][tile][half] = place[0] | (unsigned)place[down] << 16;
                }
    }

    // rows · MATRIX, where rows lie in shared memory.
    __device__ void times(float (&sums)[TILES][4], const Half *rows, int step, const Lane &lane) const {
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
#pragma unroll
            for (int i = 0; i < 4; i++) sums[tile][i] = 0.0f;
#pragma unroll
        for (int depth = 0; depth < DEPTH / 16; depth++) {
            const Half *at = rows + lane.group * step + 16 * depth + lane.column;
            const unsigned a[4] = {word(at), word(at + 8 * step), word(at + 8), word(at + 8 * step + 8)};
#pragma unroll
            for (int tile = 0; tile < TILES; tile++) multiply_add(sums[tile], a, words[depth][tile]);
        }
    }
};

// A node of a network: its row, and its wires. It is read while the one before it is at work.
struct Node {
    long long row;
    int i, j;
    bool live;

    __device__ Node(int step, int network, const long long *wires, const bool *flags, const long long *starts) {
        row = starts[step] + network;
        i = wires[2 * row], j = wires[2 * row + 1], live = flags[row];
    }
};

template <class Number> __device__ inline void clear(Number *place, int count) {
    for (int i = threadIdx.x; i < count; i += 32 * WARPS) place[i] = 0;
}

// [R_ik, R_jk, R_ij] of every wire k for the product, and the first two as they are for the slopes.
__device__ inline void gather(Half *given, float *before, const float *states, int i, int j, int room) {
    for (int place = threadIdx.x; place < WIRES * GIVEN / 2; place += 32 * WARPS) {
        const int k = place / (GIVEN / 2), n = place % (GIVEN / 2) * 2, which = n / C;
        const float *from = states + (which == 0 ? pair_of(i, k) : which == 1 ? pair_of(j, k) : pair_of(i, j)) * STATE_STEP + n % C;
        word(given + k * GIVEN_STEP + n) = pack(from[0], from[1]);
        if (which < 2 && k < room) *reinterpret_cast<float2 *>(before + k * 2 * C + n) = float2{from[0], from[1]};
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) relation_steps_forward(
    const float *start, const Half *drive, const Half *kinds, const Half *enter, const Half *change, const Half *shift,
    const long long *wires, const bool *live, const long long *starts, const long long *slots, float *states_out,
    float *before, Half *inner, Half *changes, int networks, int room) {
    alignas(16) __shared__ float states[PAIRS * STATE_STEP], means[2 * PARTS * WIRES * 2];
    alignas(16) __shared__ Half given[WIRES * GIVEN_STEP], bent[WIRES * INNER_STEP];
    const Lane lane;
    const Matrix<GIVEN, 4> entering(enter, 1, GIVEN, {lane.inner(0), lane.inner(1), lane.inner(2), lane.inner(3)}, lane);
    const Matrix<INNER, 4> changing(change, 1, INNER, {lane.change(0), lane.change(1), lane.change(2), lane.change(3)}, lane);
    for (int network = blockIdx.x; network < networks; network += gridDim.x) {
        for (int i = threadIdx.x; i < WIRES * WIRES * C; i += 32 * WARPS) {
            const int a = i / C / WIRES, b = i / C % WIRES;
            if (a >= b) states[pair_of(a, b) * STATE_STEP + i % C] = start[(a == b) * C + i % C];
        }
        __syncthreads();
        const int count = slots[network];
        Node next(0, network, wires, live, starts);
        for (int step = 0; step < count; step++) {
            const Node node = next;
            next = Node(min(step + 1, count - 1), network, wires, live, starts);
            float *before_node = before + node.row * room * 2 * C;
            Half *inner_node = inner + node.row * room * INNER, *changes_node = changes + node.row * room * INNER;
            if (!node.live) {
                clear(before_node, room * 2 * C), clear(inner_node, room * INNER), clear(changes_node, room * INNER);
                continue;
            }
            const int i = node.i, j = node.j, mine = lane.line ? j : i;
            unsigned driven[4];
#pragma unroll
            for (int tile = 0; tile < 4; tile++) driven[tile] = word(drive + node.row * INNER + lane.inner(tile));
            gather(given, before_node, states, i, j, room);
            __syncthreads();
            float sums[4][4];
            entering.times(sums, given, GIVEN_STEP, lane);
#pragma unroll
            for (int tile = 0; tile < 4; tile++) {
                const int n = lane.inner(tile);
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const int k = lane.row(half);
                    const unsigned kind = word(kinds + kind_of(k, i, j) * INNER + n);
                    const unsigned x = pack(sums[tile][2 * half] + low(driven[tile]) + low(kind),
                                            sums[tile][2 * half + 1] + high(driven[tile]) + high(kind));
                    if (k < room) word(inner_node + k * INNER + n) = x;
                    word(bent + k * INNER_STEP + n) = pack(low(x) * share_below(low(x)), high(x) * share_below(high(x)));
                }
            }
            __syncthreads();
            changing.times(sums, bent, INNER_STEP, lane);
            float raw[2][4];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int k = lane.row(half);
                float total = 0.0f, squares = 0.0f;
#pragma unroll
                for (int tile = 0; tile < 2; tile++) {
                    const unsigned gate = pack(sums[tile][2 * half], sums[tile][2 * half + 1]);
                    const unsigned update = pack(sums[tile + 2][2 * half], sums[tile + 2][2 * half + 1]);
                    const unsigned gate_shift = word(shift + lane.change(tile)), shifted = word(shift + lane.change(tile + 2));
                    if (k < room) {
                        word(changes_node + k * INNER + lane.change(tile)) = gate;
                        word(changes_node + k * INNER + lane.change(tile + 2)) = update;
                    }
                    const float *was = states + pair_of(mine, k) * STATE_STEP + lane.channel(tile);
                    raw[half][2 * tile] = was[0] + opened_by(low(gate) + low(gate_shift)) * (low(update) + low(shifted));
                    raw[half][2 * tile + 1] = was[1] + opened_by(high(gate) + high(gate_shift)) * (high(update) + high(shifted));
#pragma unroll
                    for (int e = 2 * tile; e < 2 * tile + 2; e++) total += raw[half][e], squares += raw[half][e] * raw[half][e];
                }
                total = lanes_sum<1, 4>(total), squares = lanes_sum<1, 4>(squares);
                float *place = means + ((lane.line * WIRES + k) * PARTS + lane.part) * 2;
                if (lane.column == 0) place[0] = total, place[1] = squares;
            }
            __syncthreads();
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int k = lane.row(half);
                const float *place = means + (lane.line * WIRES + k) * PARTS * 2;
                float mean = 0.0f, square = 0.0f;
#pragma unroll
                for (int part = 0; part < PARTS; part++) mean += place[2 * part] / C, square += place[2 * part + 1] / C;
                const float scale = rsqrtf(fmaxf(square - mean * mean, 0.0f) + SMALLEST);
                if (lane.line && k == i) continue;  // what the two have to do with each other is told once
                float *now = states + pair_of(mine, k) * STATE_STEP;
#pragma unroll
                for (int e = 0; e < 4; e++) now[lane.channel(e / 2) + e % 2] = (raw[half][e] - mean) * scale;
            }
            __syncthreads();
        }
        for (int i = threadIdx.x; i < room * room * C; i += 32 * WARPS)
            states_out[(long long)network * room * room * C + i] = states[pair_of(i / C / room, i / C % room) * STATE_STEP + i % C];
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) relation_steps_backward(
    const float *upper, const float *before, const Half *inner, const Half *changes, const Half *enter, const Half *change,
    const Half *shift, const long long *wires, const bool *live, const long long *starts, const long long *slots, float *of_start,
    Half *of_inner, Half *of_changes, Half *of_drive, int networks, int room) {
    alignas(16) __shared__ float slopes[PAIRS * STATE_STEP], means[2 * WIRES * PARTS * 4], aside[2 * C];
    alignas(16) __shared__ Half changed[WIRES * INNER_STEP], entered[WIRES * INNER_STEP];
    const Lane lane;
    const Matrix<INNER, 4> changing(change, INNER, 1, {lane.inner(0), lane.inner(1), lane.inner(2), lane.inner(3)}, lane);
    const Matrix<INNER, 3> entering(enter, GIVEN, 1, {lane.given(0), lane.given(1), lane.given(2)}, lane);
    for (int network = blockIdx.x; network < networks; network += gridDim.x) {
        const float *above_all = upper + (long long)network * room * room * C;
        for (int i = threadIdx.x; i < WIRES * WIRES * C; i += 32 * WARPS) {
            const int a = i / C / WIRES, b = i / C % WIRES, c = i % C;
            if (a < b) continue;
            float both = a < room ? above_all[(a * room + b) * C + c] : 0.0f;
            if (a < room && a != b) both += above_all[(b * room + a) * C + c];
            slopes[pair_of(a, b) * STATE_STEP + c] = both;
        }
        __syncthreads();
        const int last = (int)slots[network] - 1;
        Node next(last, network, wires, live, starts);
        for (int step = last; step >= 0; step--) {
            const Node node = next;
            next = Node(max(step - 1, 0), network, wires, live, starts);
            const float *before_node = before + node.row * room * 2 * C;
            const Half *inner_node = inner + node.row * room * INNER, *changes_node = changes + node.row * room * INNER;
            Half *of_inner_node = of_inner + node.row * room * INNER, *of_changes_node = of_changes + node.row * room * INNER;
            if (!node.live) {
                clear(of_inner_node, room * INNER), clear(of_changes_node, room * INNER);
                clear(of_drive + node.row * INNER, INNER);
                continue;
            }
            const int i = node.i, j = node.j, mine = lane.line ? j : i;
            unsigned given[4][2];
#pragma unroll
            for (int tile = 0; tile < 4; tile++)
#pragma unroll
                for (int half = 0; half < 2; half++)
                    given[tile][half] = lane.row(half) < room ? word(inner_node + lane.row(half) * INNER + lane.inner(tile)) : 0;
            float raw[2][4], above[2][4], opened[2][4], update[2][4];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int k = lane.row(half);
                const bool counts = k < room && !(lane.line && k == i);
                float sums[4] = {};
#pragma unroll
                for (int tile = 0; tile < 2; tile++) {
                    const int gates = lane.change(tile), updates = lane.change(tile + 2), channel = lane.channel(tile);
                    const unsigned gate = k < room ? word(changes_node + k * INNER + gates) : 0;
                    const unsigned moved = k < room ? word(changes_node + k * INNER + updates) : 0;
                    const unsigned gate_shift = word(shift + gates), shifted = word(shift + updates);
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        const int at = 2 * tile + e;
                        const float was = k < room ? before_node[(k * 2 + lane.line) * C + channel + e] : 0.0f;
                        opened[half][at] = opened_by(e ? high(gate) + high(gate_shift) : low(gate) + low(gate_shift));
                        update[half][at] = e ? high(moved) + high(shifted) : low(moved) + low(shifted);
                        raw[half][at] = was + opened[half][at] * update[half][at];
                        above[half][at] = counts ? slopes[pair_of(mine, k) * STATE_STEP + channel + e] : 0.0f;
                        sums[0] += raw[half][at], sums[1] += raw[half][at] * raw[half][at];
                        sums[2] += above[half][at], sums[3] += above[half][at] * raw[half][at];
                    }
                }
                float *place = means + ((lane.line * WIRES + k) * PARTS + lane.part) * 4;
#pragma unroll
                for (int which = 0; which < 4; which++) {
                    const float sum = lanes_sum<1, 4>(sums[which]);
                    if (lane.column == 0) place[which] = sum;
                }
            }
            __syncthreads();
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int k = lane.row(half);
                const float *place = means + (lane.line * WIRES + k) * PARTS * 4;
                float mean[4] = {};
#pragma unroll
                for (int which = 0; which < 4 * PARTS; which++) mean[which % 4] += place[which] / C;
                const float scale = rsqrtf(fmaxf(mean[1] - mean[0] * mean[0], 0.0f) + SMALLEST);
                const float along = (mean[3] - mean[0] * mean[2]) * scale;
                float of_gate[4], of_update[4];
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const float after = (raw[half][e] - mean[0]) * scale;
                    raw[half][e] = (above[half][e] - mean[2] - after * along) * scale;  // from here on its slope
                    of_update[e] = raw[half][e] * opened[half][e];
                    of_gate[e] = of_update[e] * update[half][e] * (1.0f - opened[half][e]);
                }
#pragma unroll
                for (int tile = 0; tile < 4; tile++) {
                    const int from = tile % 2 * 2, n = lane.change(tile);
                    const unsigned x = tile < 2 ? pack(of_gate[from], of_gate[from + 1]) : pack(of_update[from], of_update[from + 1]);
                    word(changed + k * INNER_STEP + n) = x;
                    if (k < room) word(of_changes_node + k * INNER + n) = x;
                }
            }
            __syncthreads();
            float sums[4][4];
            changing.times(sums, changed, INNER_STEP, lane);
#pragma unroll
            for (int tile = 0; tile < 4; tile++) {
                const int n = lane.inner(tile);
                float first = 0.0f, second = 0.0f;
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const int k = lane.row(half);
                    const unsigned x = given[tile][half];
                    const unsigned y = pack(sums[tile][2 * half] * gelu_slope(low(x)), sums[tile][2 * half + 1] * gelu_slope(high(x)));
                    word(entered + k * INNER_STEP + n) = y;
                    if (k < room) word(of_inner_node + k * INNER + n) = y;
                    first += low(y), second += high(y);
                }
                first = lanes_sum<4, 32>(first), second = lanes_sum<4, 32>(second);
                if (lane.group == 0) word(of_drive + node.row * INNER + n) = pack(first, second);
            }
            __syncthreads();
            float through[3][4];
            entering.times(through, entered, INNER_STEP, lane);
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const float own = lanes_sum<4, 32>(through[2][e] + through[2][e + 2]);
                if (lane.group == 0) aside[lane.given(2) - 2 * C + e] = own;
            }
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int k = lane.row(half);
                float *below = lane.line && k == i ? aside + C : slopes + pair_of(mine, k) * STATE_STEP;
#pragma unroll
                for (int e = 0; e < 4; e++)
                    below[lane.channel(e / 2) + e % 2] = raw[half][e] + through[e / 2][2 * half + e % 2];
            }
            __syncthreads();
            for (int c = threadIdx.x; c < C; c += 32 * WARPS) slopes[pair_of(i, j) * STATE_STEP + c] += aside[c] + aside[C + c];
            __syncthreads();
        }
        for (int c = threadIdx.x; c < C; c += 32 * WARPS) {
            float same = 0.0f, other = 0.0f;
            for (int a = 0; a < room; a++)
                for (int b = 0; b <= a; b++) (a == b ? same : other) += slopes[pair_of(a, b) * STATE_STEP + c];
            of_start[(network * 2LL) * C + c] = other, of_start[(network * 2LL + 1) * C + c] = same;
        }
        __syncthreads();
    }
}

// The parallel step of each node, the earliest that its two wires allow; one thread a network.
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
