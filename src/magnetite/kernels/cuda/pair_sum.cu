// S[g, v, c] = Σ_u gelu(Σ_f W[c, f] p[g, u, v, f] + b[c]) over the nodes u of graph g, and the gradients of W and b.
//
// One warp per landing node v, HIDDEN/32 channels per lane: weights and sums stay in registers. A warp reads the features
// of 32 start nodes u at once, one per lane, and stores them as floats in its own section of shared memory, from which all
// lanes read the same pair at a time; only warps synchronise, never a block. Warps of a block have neighbouring v, whose
// features are adjacent in memory, so they share cache lines. The backward pass recomputes the hidden channels; gradients
// are summed in registers over all nodes of a warp and written once, so the result does not depend on timing.
//
// Compiled at run time with FEATURES, HIDDEN (a multiple of 32) and HALF (1 if features are stored in half precision).

#include "normal.cuh"

constexpr int F = FEATURES, R = HIDDEN / 32, WARPS = 8;
constexpr int ROW = (F + 3) / 4 * 4;  // length of a pair in shared memory, which is read four numbers at a time

#if HALF
typedef unsigned short Feature;  // the bits; the header with the type may be missing
#else
typedef float Feature;
#endif

#ifdef __CUDACC__
__device__ inline float to_float(float number) { return number; }
__device__ inline float to_float(unsigned short bits) {
    float number;
    asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(bits));
    return number;
}
#endif

constexpr int BYTES = F * sizeof(Feature);
constexpr int ALIGNMENT = BYTES % 16 == 0 ? 16 : BYTES % 8 == 0 ? 8 : BYTES % 4 == 0 ? 4 : 2;
struct alignas(ALIGNMENT) Pair {
    Feature features[F];
};

// The lane's channels of the layer: lane, lane + 32, …
struct Layer {
    float weight[R][F], bias[R];

    __device__ Layer(const float *weights, const float *biases, int lane) {
#pragma unroll
        for (int r = 0; r < R; r++) {
            bias[r] = biases[r * 32 + lane];
#pragma unroll
            for (int f = 0; f < F; f++) weight[r][f] = weights[(r * 32 + lane) * F + f];
        }
    }
    __device__ float operator()(const float (&features)[ROW], int r) const {
        float x = bias[r];
#pragma unroll
        for (int f = 0; f < F; f++) x += weight[r][f] * features[f];
        return x;
    }
};

// Call use(features) for the pairs of one landing node; those of consecutive start nodes are `nodes` apart.
template <class Use>
__device__ inline void for_each_start(const Pair *pairs, int starts, int nodes, float (*tile)[ROW], int lane, Use use) {
    for (int first = 0; first < starts; first += 32) {
        const int count = starts - first < 32 ? starts - first : 32;
        if (lane < count) {
            const Pair pair = pairs[(long long)(first + lane) * nodes];
#pragma unroll
            for (int f = 0; f < F; f++) tile[lane][f] = to_float(pair.features[f]);
        }
        __syncwarp();
#pragma unroll 4
        for (int u = 0; u < count; u++) {
            float features[ROW];
#pragma unroll
            for (int f = 0; f < F; f += 4) {
                const float4 part = *reinterpret_cast<const float4 *>(&tile[u][f]);
                features[f] = part.x, features[f + 1] = part.y, features[f + 2] = part.z, features[f + 3] = part.w;
            }
            use(features);
        }
        __syncwarp();
    }
}

// Call use(node, pairs, starts) for the nodes of this warp; padding has no starts.
template <class Use>
__device__ inline void for_each_landing(const Pair *pairs, const long long *sizes, int all_nodes, int nodes, Use use) {
    for (int node = blockIdx.x * WARPS + threadIdx.x / 32; node < all_nodes; node += gridDim.x * WARPS) {
        const int graph = node / nodes, landing = node % nodes, size = (int)sizes[graph];
        use(node, pairs + (long long)graph * nodes * nodes + landing, landing < size ? size : 0);
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    pair_sum_forward(const Pair *pairs, const long long *sizes, const float *weights, const float *biases, float *sums,
                     int all_nodes, int nodes) {
    alignas(16) __shared__ float tiles[WARPS][32][ROW];
    const int lane = threadIdx.x % 32;
    float(*tile)[ROW] = tiles[threadIdx.x / 32];
    const Layer layer(weights, biases, lane);
    for_each_landing(pairs, sizes, all_nodes, nodes, [&](int node, const Pair *landing, int starts) {
        float sum[R] = {};
        for_each_start(landing, starts, nodes, tile, lane, [&](const float(&features)[ROW]) {
#pragma unroll
            for (int r = 0; r < R; r++) {
                const float x = layer(features, r);
                sum[r] += Normal(x).gelu(x);
            }
        });
#pragma unroll
        for (int r = 0; r < R; r++) sums[(long long)node * HIDDEN + r * 32 + lane] = sum[r];
    });
}

// gradients[warp, c, f], where f = FEATURES is the bias.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    pair_sum_backward(const Pair *pairs, const long long *sizes, const float *weights, const float *biases,
                      const float *upper, float *gradients, int all_nodes, int nodes) {
    alignas(16) __shared__ float tiles[WARPS][32][ROW];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float(*tile)[ROW] = tiles[warp];
    const Layer layer(weights, biases, lane);
    float gradient[R][F + 1] = {};
    for_each_landing(pairs, sizes, all_nodes, nodes, [&](int node, const Pair *landing, int starts) {
        float above[R];
#pragma unroll
        for (int r = 0; r < R; r++) above[r] = upper[(long long)node * HIDDEN + r * 32 + lane];
        for_each_start(landing, starts, nodes, tile, lane, [&](const float(&features)[ROW]) {
#pragma unroll
            for (int r = 0; r < R; r++) {
                const float x = layer(features, r), given = above[r] * Normal(x).gelu_gradient(x);
                gradient[r][F] += given;
#pragma unroll
                for (int f = 0; f < F; f++) gradient[r][f] += given * features[f];
            }
        });
    });
    gradients += (long long)(blockIdx.x * WARPS + warp) * HIDDEN * (F + 1);
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int f = 0; f <= F; f++) gradients[(r * 32 + lane) * (F + 1) + f] = gradient[r][f];
}
