// Shared by forward.cu and backward.cu: how blocks, warps and lanes divide the work.
//
// One block per network. Its relations lie in shared memory, one vector for every two of at most 16 wires; the matrices lie
// in registers, 32 columns per warp. The 16 wires k of a step are the rows of products on tensor cores, in bfloat16 with
// sums in single precision.
//
// Compiled at run time with STATE, the size of a vector: 16 or 32.

#include "bfloat16.cuh"
#include "lanes_sum.cuh"

constexpr int C = STATE, GIVEN = 3 * C, INNER = 4 * C, WARPS = C / 8, THREADS = 32 * WARPS, PARTS = WARPS / 2;
constexpr int WIRES = 16, PAIRS = WIRES * (WIRES + 1) / 2;
constexpr int STATE_STEP = C + 4, GIVEN_STEP = GIVEN + 8, INNER_STEP = INNER + 8;  // padded against bank conflicts
constexpr float EPSILON = 1e-5f;

typedef unsigned short Half;  // the bits of a bfloat16

#ifdef __CUDACC__
// sum += a · b, for a of size 16 × 16 and b of size 16 × 8.
__device__ inline void multiply_add(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

__device__ inline unsigned &word(Half *place) { return *reinterpret_cast<unsigned *>(place); }
__device__ inline unsigned word(const Half *place) { return *reinterpret_cast<const unsigned *>(place); }

__device__ inline int pair_of(int a, int b) { return a < b ? b * (b + 1) / 2 + a : a * (a + 1) / 2 + b; }
__device__ inline int kind_of(int k, int i, int j) { return (k >= i) + (k > i) + (k >= j) + (k > j); }
__device__ inline float normal_cdf(float x) { return 0.5f + 0.5f * erff(x * 0.70710678f); }
__device__ inline float gelu_gradient(float x) { return normal_cdf(x) + x * 0.39894228f * __expf(-0.5f * x * x); }

// The first of a lane's two columns in each tile of a product.
template <int COUNT> struct Tiles {
    int columns[COUNT];
};

// The part of a thread. In a product it holds rows `row(0)` and `row(1)`, and two columns of each tile of 8, from `column` on.
// In addition, each warp holds 16 channels of the relations of one of the two wires.
struct Lane {
    int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    int line = warp / PARTS, part = warp % PARTS;
    __device__ int row(int half) const { return group + 8 * half; }
    __device__ int channel(int tile) const { return part * 16 + tile * 8 + column; }  // of tiles 0 and 1
    __device__ int inner(int tile) const { return warp * 32 + tile * 8 + column; }
    __device__ int change(int tile) const { return line * 2 * C + tile / 2 * C + channel(tile % 2); }  // gates, updates
    __device__ int given(int tile) const { return tile < 2 ? line * C + channel(tile) : 2 * C + warp * 8 + column; }
    __device__ Tiles<4> inners() const { return {inner(0), inner(1), inner(2), inner(3)}; }
    __device__ Tiles<4> changes() const { return {change(0), change(1), change(2), change(3)}; }
    __device__ Tiles<3> givens() const { return {given(0), given(1), given(2)}; }
};

// A matrix as the right factor of products: MATRIX[k][n] lies at k · down + n · right.
template <int DEPTH, int TILES> struct Matrix {
    unsigned words[DEPTH / 16][TILES][2];

    __device__ Matrix(const Half *numbers, int down, int right, const Tiles<TILES> &tiles, const Lane &lane) {
#pragma unroll
        for (int depth = 0; depth < DEPTH / 16; depth++)
#pragma unroll
            for (int tile = 0; tile < TILES; tile++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const int k = 16 * depth + 8 * half + lane.column, n = tiles.columns[tile] - lane.column + lane.group;
                    const Half *place = numbers + k * down + n * right;
                    words[depth][tile][half] = place[0] | (unsigned)place[down] << 16;
                }
    }

    // rows · MATRIX, with rows in shared memory.
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

// A node: its row and its wires. The next one is read while a node is processed.
struct Node {
    long long row;
    int i, j;

    __device__ Node(long long row, const long long *wires) : row(row) { i = wires[2 * row], j = wires[2 * row + 1]; }
};

template <class Number> __device__ inline void clear(Number *place, int count) {
    for (int i = threadIdx.x; i < count; i += THREADS) place[i] = 0;
}

// The wire whose relations the warp holds.
__device__ inline int wire_of(const Lane &lane, const Node &node) { return lane.line ? node.j : node.i; }

// Moments of a vector x over its channels: mean and variance; with COUNT = 4 also the means of its gradient y and of
// y (x − mean). A warp holds 16 of the channels and writes sums around its own mean, so that a common offset costs no
// precision; after a barrier all threads combine them.
template <int COUNT> struct Moments {
    float parts[2][WIRES][PARTS][COUNT];

    __device__ void put(const Lane &lane, int k, const float (&x)[4], const float (&y)[4]) {
        float sums[COUNT] = {lanes_sum<1, 4>(x[0] + x[1] + x[2] + x[3]) / 16};
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const float apart = x[e] - sums[0];
            sums[1] += apart * apart;
            if constexpr (COUNT == 4) sums[2] += y[e], sums[3] += y[e] * apart;
        }
        float *place = parts[lane.line][k][lane.part];
#pragma unroll
        for (int which = 0; which < COUNT; which++) {
            const float sum = which ? lanes_sum<1, 4>(sums[which]) : sums[0];
            if (lane.column == 0) place[which] = sum;
        }
    }
    __device__ void find(const Lane &lane, int k, float (&found)[COUNT]) const {
        const auto &line = parts[lane.line][k];
#pragma unroll
        for (int which = 0; which < COUNT; which++) found[which] = 0.0f;
#pragma unroll
        for (int part = 0; part < PARTS; part++) found[0] += line[part][0] / PARTS;
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const float apart = line[part][0] - found[0];
            found[1] += (line[part][1] + 16 * apart * apart) / C;
            if constexpr (COUNT == 4) found[2] += line[part][2] / C, found[3] += (line[part][3] + line[part][2] * apart) / C;
        }
    }
};

// Two neighbouring channels of a gate and an update, as they were rounded, with their biases.
struct Change {
    unsigned gate, update, gate_shift, update_shift;

    __device__ Change(unsigned gate, unsigned update, const Half *shift, const Lane &lane, int tile)
        : gate(gate), update(update), gate_shift(word(shift + lane.change(tile))),
          update_shift(word(shift + lane.change(tile + 2))) {}
    __device__ float opened(int odd) const {
        const float x = odd ? high(gate) + high(gate_shift) : low(gate) + low(gate_shift);
        return 1.0f / (1.0f + __expf(-x));
    }
    __device__ float moved(int odd) const {
        return odd ? high(update) + high(update_shift) : low(update) + low(update_shift);
    }
};
