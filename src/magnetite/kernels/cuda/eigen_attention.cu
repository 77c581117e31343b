// Attention over the eigenvectors of each node, x + W_o softmax(q kᵀ/√c) v, forward and backward.
//
// One warp per node, one lane per token: queries and scores stay in the lane's registers, keys and values are exchanged
// through shared memory, which also holds the weights once per block. The backward pass recomputes everything from the
// tokens; gradients of the weights are summed in registers over all nodes of a warp and written once, so the result does
// not depend on timing.
//
// Compiled at run time with TOKENS (at most 32), WIDTH (of a token), HEADS and CHANNELS (of a head); HEADS · CHANNELS is a
// multiple of 4.

constexpr int T = TOKENS, W = WIDTH, H = HEADS, C = CHANNELS, WARPS = 2;
constexpr int D = H * C;           // channels of all heads
constexpr int INNER = 3 * D;       // queries, keys, values
constexpr int ROW = 2 * D + 4;     // length of a key and a value in shared memory; 4 more to avoid bank conflicts
constexpr int SQUARE = T | 1;      // length of a row of scores there, odd for the same reason
constexpr int IN_ROWS = (W + 4) / 4, IN_COLUMNS = (INNER + 7) / 8;   // of the gradients that a lane sums: 4 × 8 lanes
constexpr int OUT_ROWS = (W + 7) / 8, OUT_COLUMNS = D / 4;           // 8 × 4 lanes
constexpr int IN_STEP = 8 * IN_COLUMNS + 4, X_STEP = 4 * IN_ROWS, OUT_STEP = 8 * OUT_ROWS, MIXED_STEP = D + 4;

constexpr int FIRST_USE = 2 * T * ROW + 2 * T * SQUARE;
constexpr int SECOND_USE = T * (IN_STEP + X_STEP + OUT_STEP + MIXED_STEP);
constexpr int SCRATCH = ((FIRST_USE > SECOND_USE ? FIRST_USE : SECOND_USE) + 3) / 4 * 4;  // keeps each warp's section aligned

struct Weights {
    float inner[(W + 1) * INNER];  // [w][output]; row W is the bias
    float out[W * D];              // [w][channel]
};

__device__ inline void load_weights(Weights &weights, const float *inner, const float *bias, const float *out) {
    for (int i = threadIdx.x; i < W * INNER; i += 32 * WARPS) weights.inner[i % W * INNER + i / W] = inner[i];
    for (int i = threadIdx.x; i < INNER; i += 32 * WARPS) weights.inner[W * INNER + i] = bias[i];
    for (int i = threadIdx.x; i < W * D; i += 32 * WARPS) weights.out[i] = out[i];
    __syncthreads();
}

// y += a · row, of D numbers aligned to 16 bytes.
__device__ inline void add_row(float (&y)[D], float a, const float *row) {
#pragma unroll
    for (int d = 0; d < D; d += 4) {
        float4 part = *reinterpret_cast<const float4 *>(row + d);
        y[d] += a * part.x;
        y[d + 1] += a * part.y;
        y[d + 2] += a * part.z;
        y[d + 3] += a * part.w;
    }
}

// a + Σ y · row, of D numbers aligned to 16 bytes.
__device__ inline float dot_row(float a, const float (&y)[D], const float *row) {
#pragma unroll
    for (int d = 0; d < D; d += 4) {
        float4 part = *reinterpret_cast<const float4 *>(row + d);
        a += y[d] * part.x + y[d + 1] * part.y + y[d + 2] * part.z + y[d + 3] * part.w;
    }
    return a;
}

__device__ inline void load_head(float (&y)[C], const float *row) {
    if constexpr (C == 4) {
        float4 part = *reinterpret_cast<const float4 *>(row);
        y[0] = part.x, y[1] = part.y, y[2] = part.z, y[3] = part.w;
    } else {
#pragma unroll
        for (int c = 0; c < C; c++) y[c] = row[c];
    }
}

__device__ inline void store_row(float *row, const float (&y)[D]) {
#pragma unroll
    for (int d = 0; d < D; d += 4) *reinterpret_cast<float4 *>(row + d) = float4{y[d], y[d + 1], y[d + 2], y[d + 3]};
}

__device__ inline void load_token(float (&x)[W], const float *rows, bool real) {
#pragma unroll
    for (int w = 0; w < W; w++) x[w] = real ? rows[w] : 0.0f;
}

// Queries (0), keys (1) or values (2) of a token.
__device__ inline void project(float (&y)[D], const float (&x)[W], const Weights &weights, int part) {
#pragma unroll
    for (int d = 0; d < D; d++) y[d] = weights.inner[W * INNER + part * D + d];
#pragma unroll
    for (int w = 0; w < W; w++) add_row(y, x[w], weights.inner + w * INNER + part * D);
}

// Keys and values of the lane's token into its rows of shared memory, its queries, scaled, into registers.
__device__ inline void project_all(float (&query)[D], float *keys, float *values, const float (&x)[W],
                                   const Weights &weights, int lane) {
    project(query, x, weights, 1);
    if (lane < T) store_row(keys + lane * ROW, query);
    project(query, x, weights, 2);
    if (lane < T) store_row(values + lane * ROW, query);
    project(query, x, weights, 0);
    const float scale = 1.0f / sqrtf(C);
#pragma unroll
    for (int d = 0; d < D; d++) query[d] *= scale;
}

// The softmax of one head's scores of the lane's token; zero for masked keys.
__device__ inline void attend(float (&weight)[T], const float (&query)[D], const float *keys, unsigned open, int head) {
    float most = -1e30f, total = 0.0f;
#pragma unroll
    for (int j = 0; j < T; j++) {
        float key[C], score = 0.0f;
        load_head(key, keys + j * ROW + head * C);
#pragma unroll
        for (int c = 0; c < C; c++) score += query[head * C + c] * key[c];
        weight[j] = score;
        if (open >> j & 1) most = fmaxf(most, score);
    }
#pragma unroll
    for (int j = 0; j < T; j++) {
        weight[j] = open >> j & 1 ? __expf(weight[j] - most) : 0.0f;
        total += weight[j];
    }
    total = total > 0.0f ? 1.0f / total : 0.0f;
#pragma unroll
    for (int j = 0; j < T; j++) weight[j] *= total;
}

__device__ inline unsigned open_keys(const bool *mask, long long node, int lane) {
    return __ballot_sync(~0u, lane < T && mask[node * T + lane]);
}

extern "C" __global__ void eigen_attention_forward(const float *x, const bool *mask, const float *inner,
                                                   const float *bias, const float *out, float *y, int nodes) {
    alignas(16) __shared__ Weights weights;
    alignas(16) __shared__ float rows[WARPS][T * ROW];
    load_weights(weights, inner, bias, out);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool real = lane < T;
    float *keys = rows[warp], *values = keys + D;
    for (int node = blockIdx.x * WARPS + warp; node < nodes; node += gridDim.x * WARPS) {
        const unsigned open = open_keys(mask, node, lane);
        const long long place = ((long long)node * T + lane) * W;
        float token[W], query[D], mixed[D] = {};
        load_token(token, x + place, real);
        project_all(query, keys, values, token, weights, lane);
        __syncwarp();
#pragma unroll
        for (int head = 0; head < H; head++) {
            float weight[T], value[C];
            attend(weight, query, keys, open, head);
#pragma unroll
            for (int j = 0; j < T; j++) {
                load_head(value, values + j * ROW + head * C);
#pragma unroll
                for (int c = 0; c < C; c++) mixed[head * C + c] += weight[j] * value[c];
            }
        }
        __syncwarp();
        if (real)
#pragma unroll
            for (int w = 0; w < W; w++) y[place + w] = dot_row(token[w], mixed, weights.out + w * D);
    }
}

// The lane's share of the gradients of the weights, summed over all nodes of its warp.
struct Gradients {
    float inner[IN_ROWS][IN_COLUMNS] = {};
    float out[OUT_ROWS][OUT_COLUMNS] = {};

    // Add Σ_t x_t ⊗ given_t for the inner weights and Σ_t upper_t ⊗ mixed_t for the outer ones.
    __device__ void gather(const float *given, const float *x, const float *upper, const float *mixed, int lane) {
        for (int t = 0; t < T; t++) {
            float left[IN_ROWS], right[IN_COLUMNS];
#pragma unroll
            for (int i = 0; i < IN_ROWS; i++) left[i] = x[t * X_STEP + lane / 8 * IN_ROWS + i];
#pragma unroll
            for (int j = 0; j < IN_COLUMNS; j++) right[j] = given[t * IN_STEP + lane % 8 * IN_COLUMNS + j];
#pragma unroll
            for (int i = 0; i < IN_ROWS; i++)
#pragma unroll
                for (int j = 0; j < IN_COLUMNS; j++) inner[i][j] += left[i] * right[j];
            float channel[OUT_COLUMNS];
#pragma unroll
            for (int j = 0; j < OUT_COLUMNS; j++) channel[j] = mixed[t * MIXED_STEP + lane % 4 * OUT_COLUMNS + j];
#pragma unroll
            for (int i = 0; i < OUT_ROWS; i++) {
                float row = upper[t * OUT_STEP + lane / 4 * OUT_ROWS + i];
#pragma unroll
                for (int j = 0; j < OUT_COLUMNS; j++) out[i][j] += row * channel[j];
            }
        }
    }

    __device__ void write(float *of_inner, float *of_out, int lane) const {
#pragma unroll
        for (int i = 0; i < IN_ROWS; i++)
#pragma unroll
            for (int j = 0; j < IN_COLUMNS; j++) {
                int w = lane / 8 * IN_ROWS + i, output = lane % 8 * IN_COLUMNS + j;
                if (w <= W && output < INNER) of_inner[output * (W + 1) + w] = inner[i][j];
            }
#pragma unroll
        for (int i = 0; i < OUT_ROWS; i++)
#pragma unroll
            for (int j = 0; j < OUT_COLUMNS; j++) {
                int w = lane / 4 * OUT_ROWS + i, d = lane % 4 * OUT_COLUMNS + j;
                if (w < W) of_out[w * D + d] = out[i][j];
            }
    }
};

extern "C" __global__ void eigen_attention_backward(const float *x, const bool *mask, const float *inner,
                                                    const float *bias, const float *out, const float *upper,
                                                    float *lower, float *of_inner, float *of_out, int nodes) {
    alignas(16) __shared__ Weights weights;
    alignas(16) __shared__ float scratch[WARPS][SCRATCH];
    load_weights(weights, inner, bias, out);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool real = lane < T;
    const float scale = 1.0f / sqrtf(C);
    // First use: keys, values, queries, gradients of the mixed values, scores, gradients of the scores.
    float *keys = scratch[warp], *values = keys + D, *queries = keys + T * ROW, *given_rows = queries + D;
    float *all_weights = queries + T * ROW, *all_gradients = all_weights + T * SQUARE;
    // Second use: gradients of queries, keys and values; tokens; gradients of the result; mixed values.
    float *given_inner = scratch[warp], *tokens = given_inner + T * IN_STEP;
    float *uppers = tokens + T * X_STEP, *all_mixed = uppers + T * OUT_STEP;
    Gradients gradients;
    for (int node = blockIdx.x * WARPS + warp; node < nodes; node += gridDim.x * WARPS) {
        const unsigned open = open_keys(mask, node, lane);
        const long long place = ((long long)node * T + lane) * W;
        float token[W], query[D], given[D] = {}, mixed[D] = {};
        float given_query[D] = {}, given_key[D] = {}, given_value[D] = {};
        load_token(token, x + place, real);
        project_all(query, keys, values, token, weights, lane);
        if (real) {
            store_row(queries + lane * ROW, query);
#pragma unroll
            for (int w = 0; w < W; w++) add_row(given, upper[place + w], weights.out + w * D);
            store_row(given_rows + lane * ROW, given);
        }
        __syncwarp();
#pragma unroll
        for (int head = 0; head < H; head++) {
            float weight[T], gradient[T], part[C], total = 0.0f;
            attend(weight, query, keys, open, head);
#pragma unroll
            for (int j = 0; j < T; j++) {
                load_head(part, values + j * ROW + head * C);
                gradient[j] = 0.0f;
#pragma unroll
                for (int c = 0; c < C; c++) {
                    mixed[head * C + c] += weight[j] * part[c];
                    gradient[j] += given[head * C + c] * part[c];
                }
                total += weight[j] * gradient[j];
            }
#pragma unroll
            for (int j = 0; j < T; j++) {
                gradient[j] = weight[j] * (gradient[j] - total);
                load_head(part, keys + j * ROW + head * C);
#pragma unroll
                for (int c = 0; c < C; c++) given_query[head * C + c] += gradient[j] * part[c];
                if (real) {
                    all_weights[lane * SQUARE + j] = weight[j];
                    all_gradients[lane * SQUARE + j] = gradient[j];
                }
            }
            __syncwarp();
            if (real)
                for (int i = 0; i < T; i++) {  // the lane's token as a key
                    const float score = all_weights[i * SQUARE + lane], rise = all_gradients[i * SQUARE + lane];
                    load_head(part, given_rows + i * ROW + head * C);
#pragma unroll
                    for (int c = 0; c < C; c++) given_value[head * C + c] += score * part[c];
                    load_head(part, queries + i * ROW + head * C);
#pragma unroll
                    for (int c = 0; c < C; c++) given_key[head * C + c] += rise * part[c];
                }
            __syncwarp();
        }
        if (real) {
#pragma unroll
            for (int d = 0; d < D; d++) {
                given_query[d] *= scale;
                given_inner[lane * IN_STEP + d] = given_query[d];
                given_inner[lane * IN_STEP + D + d] = given_key[d];
                given_inner[lane * IN_STEP + 2 * D + d] = given_value[d];
                all_mixed[lane * MIXED_STEP + d] = mixed[d];
            }
#pragma unroll
            for (int d = INNER; d < IN_STEP; d++) given_inner[lane * IN_STEP + d] = 0.0f;
#pragma unroll
            for (int w = 0; w < W; w++) {
                const float *row = weights.inner + w * INNER;
                float above = upper[place + w];
                tokens[lane * X_STEP + w] = token[w];
                uppers[lane * OUT_STEP + w] = above;
                above = dot_row(dot_row(dot_row(above, given_query, row), given_key, row + D), given_value, row + 2 * D);
                lower[place + w] = above;
            }
#pragma unroll
            for (int w = W; w < X_STEP; w++) tokens[lane * X_STEP + w] = w == W ? 1.0f : 0.0f;
#pragma unroll
            for (int w = W; w < OUT_STEP; w++) uppers[lane * OUT_STEP + w] = 0.0f;
        }
        __syncwarp();
        gradients.gather(given_inner, tokens, uppers, all_mixed, lane);
        __syncwarp();
    }
    const int gatherer = blockIdx.x * WARPS + warp;
    gradients.write(of_inner + (long long)gatherer * INNER * (W + 1), of_out + (long long)gatherer * W * D, lane);
}
