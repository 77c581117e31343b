// A gated recurrent unit in topological order, h = (1 − z) n + z m with n = tanh(a + r b), and the gradients of its gates.
//
// One block per part, such as a graph, of which no edge leads to another one: all levels of a part in one launch. Nodes
// are in the order of parts and levels, edges in that of their targets. A warp reads the edges of a node, and all threads
// of the block multiply the messages of WARPS nodes by the matrices, which are in shared memory. Gradients are gathered
// along the edges that leave a node, so the result does not depend on timing.
//
// Compiled at run time with WIDTH, a multiple of 32, and SENT, 1 if edges have features: then tanh(W h + e) is sent along
// an edge instead of h.

#include "lanes_sum.cuh"

constexpr int D = WIDTH, R = D / 32, WARPS = 8, THREADS = 32 * WARPS;
typedef long long Number;

// Call use(first, count) for up to WARPS nodes of the same level at a time, level by level from the first to the last or
// back; the nodes of level l of a part begin at starts[part · depth + l].
template <class Use>
__device__ inline void for_each_level(const Number *starts, int part, int depth, bool back, Use use) {
    for (int step = 0; step < depth; step++) {
        const Number *level = starts + (Number)part * depth + (back ? depth - 1 - step : step);
        for (Number first = level[0]; first < level[1]; first += WARPS)
            use(first, level[1] - first < WARPS ? (int)(level[1] - first) : WARPS);
    }
}

__device__ inline float *loaded(float *to, const float *from, int count) {
    for (int i = threadIdx.x; i < count; i += THREADS) to[i] = from[i];
    return to + count;
}

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// `recurrent` [D, 3 D] and `matrix` [D, D] have a row per input; edges of node v are those from entering[v] on.
extern "C" __global__ void __launch_bounds__(THREADS)
    recurrence_forward(const float *given, const float *features, const float *matrix, const float *score,
                       const float *recurrent, const float *bias, const Number *sources, const Number *entering,
                       const Number *starts, float *sent, float *hidden, int parts, int depth) {
    extern __shared__ __align__(16) char shared[];
    float *const to_gates = reinterpret_cast<float *>(shared), *const to_sent = loaded(to_gates, recurrent, 3 * D * D);
    float *const messages = SENT ? loaded(to_sent, matrix, D * D) : to_sent, *const states = messages + WARPS * D;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float scores[R];
#pragma unroll
    for (int r = 0; r < R; r++) scores[r] = score[r * 32 + lane];
    __syncthreads();
    for (int part = blockIdx.x; part < parts; part += gridDim.x)
        for_each_level(starts, part, depth, false, [&](Number first, int count) {
            if (warp < count) {
                const Number node = first + warp;
                float message[R] = {}, largest = -1e30f, total = 0.0f;
                for (Number edge = entering[node]; edge < entering[node + 1]; edge++) {
                    float state[R], mine = 0.0f;
#pragma unroll
                    for (int r = 0; r < R; r++) {
                        state[r] = sent[sources[edge] * D + r * 32 + lane];
                        if (SENT) state[r] = tanhf(state[r] + features[edge * D + r * 32 + lane]);
                        mine += state[r] * scores[r];
                    }
                    mine = lanes_sum<1, 32>(mine);
                    const float most = fmaxf(largest, mine), before = expf(largest - most), now = expf(mine - most);
                    largest = most;
                    total = total * before + now;
#pragma unroll
                    for (int r = 0; r < R; r++) message[r] = message[r] * before + now * state[r];
                }
#pragma unroll
                for (int r = 0; r < R; r++) messages[warp * D + r * 32 + lane] = total > 0.0f ? message[r] / total : 0.0f;
            }
            __syncthreads();
            for (int i = threadIdx.x; i < count * D; i += THREADS) {
                const int channel = i % D;
                const float *message = messages + i / D * D;
                float reset = bias[channel], kept = bias[D + channel], recalled = bias[2 * D + channel];
#pragma unroll 8
                for (int j = 0; j < D; j++) {
                    reset += message[j] * to_gates[j * 3 * D + channel];
                    kept += message[j] * to_gates[j * 3 * D + D + channel];
                    recalled += message[j] * to_gates[j * 3 * D + 2 * D + channel];
                }
                const float *own = given + (first + i / D) * 3 * D + channel;
                reset = sigmoid(own[0] + reset), kept = sigmoid(own[D] + kept);
                const float next = tanhf(own[2 * D] + reset * recalled);
                states[i] = next + kept * (message[channel] - next);
                hidden[first * D + i] = states[i];
            }
            __syncthreads();
            if constexpr (SENT) {
                for (int i = threadIdx.x; i < count * D; i += THREADS) {
                    const float *state = states + i / D * D;
                    float sum = 0.0f;
#pragma unroll 8
                    for (int j = 0; j < D; j++) sum += state[j] * to_sent[j * D + i % D];
                    sent[first * D + i] = sum;
                }
                __syncthreads();
            }
        });
}

// The gradients of what depends on the order, given everything else of the forward pass: `to_new`, `to_kept` and
// `to_reset` are the factors by which the gradient of a state reaches the gates. `recurrent` [3 D, D] and `matrix` [D, D]
// have a row per output; the edges from node v are left[leaving[v]], ….
extern "C" __global__ void __launch_bounds__(THREADS)
    recurrence_backward(const float *upper, const float *to_new, const float *to_kept, const float *to_reset,
                        const float *kept, const float *reset, const float *message, const float *states,
                        const float *shares, const float *matrix, const float *score, const float *recurrent,
                        const Number *entering, const Number *leaving, const Number *left, const Number *starts,
                        float *of_given, float *of_gates, float *of_sent, float *of_states, float *of_scores, int parts,
                        int depth) {
    extern __shared__ __align__(16) char shared[];
    float *const from_gates = reinterpret_cast<float *>(shared);
    float *const from_sent = loaded(from_gates, recurrent, 3 * D * D);
    float *const above = SENT ? loaded(from_sent, matrix, D * D) : from_sent;
    float *const gates = above + WARPS * D, *const kept_part = gates + WARPS * 3 * D;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float scores[R];
#pragma unroll
    for (int r = 0; r < R; r++) scores[r] = score[r * 32 + lane];
    __syncthreads();
    for (int part = blockIdx.x; part < parts; part += gridDim.x)
        for_each_level(starts, part, depth, true, [&](Number first, int count) {
            const Number node = first + warp;
            if (warp < count) {
                float sum[R] = {};
                for (Number place = leaving[node]; place < leaving[node + 1]; place++)
#pragma unroll
                    for (int r = 0; r < R; r++) sum[r] += of_states[left[place] * D + r * 32 + lane];
#pragma unroll
                for (int r = 0; r < R; r++) {
                    above[warp * D + r * 32 + lane] = sum[r];
                    if (SENT) of_sent[node * D + r * 32 + lane] = sum[r];
                }
            }
            __syncthreads();
            for (int i = threadIdx.x; i < count * D; i += THREADS) {
                const int channel = i % D, row = i / D;
                const Number at = first * D + i;
                float own = upper[at];
                if (SENT) {
#pragma unroll 8
                    for (int j = 0; j < D; j++) own += above[row * D + j] * from_sent[j * D + channel];
                } else {
                    own += above[i];
                }
                const float next = own * to_new[at], of_reset = next * to_reset[at], of_kept = own * to_kept[at];
                const float recalled = next * reset[at];
                float *const mine = gates + row * 3 * D + channel;
                mine[0] = of_reset, mine[D] = of_kept, mine[2 * D] = recalled;
                kept_part[i] = own * kept[at];
                const Number wide = (first + row) * 3 * D + channel;
                of_given[wide] = of_gates[wide] = of_reset;
                of_given[wide + D] = of_gates[wide + D] = of_kept;
                of_given[wide + 2 * D] = next, of_gates[wide + 2 * D] = recalled;
            }
            __syncthreads();
            for (int i = threadIdx.x; i < count * D; i += THREADS) {
                float sum = kept_part[i];
#pragma unroll 8
                for (int j = 0; j < 3 * D; j++) sum += gates[i / D * 3 * D + j] * from_gates[j * D + i % D];
                above[i] = sum;
            }
            __syncthreads();
            if (warp < count) {
                float of_message[R], mean = 0.0f;
#pragma unroll
                for (int r = 0; r < R; r++) {
                    of_message[r] = above[warp * D + r * 32 + lane];
                    mean += of_message[r] * message[node * D + r * 32 + lane];
                }
                mean = lanes_sum<1, 32>(mean);
                for (Number edge = entering[node]; edge < entering[node + 1]; edge++) {
                    const float share = shares[edge];
                    float state[R], along = 0.0f;
#pragma unroll
                    for (int r = 0; r < R; r++) {
                        state[r] = states[edge * D + r * 32 + lane];
                        along += of_message[r] * state[r];
                    }
                    const float of_score = share * (lanes_sum<1, 32>(along) - mean);
#pragma unroll
                    for (int r = 0; r < R; r++) {
                        const float found = of_score * scores[r] + share * of_message[r];
                        of_states[edge * D + r * 32 + lane] = SENT ? found * (1.0f - state[r] * state[r]) : found;
                    }
                    if (lane == 0) of_scores[edge] = of_score;
                }
            }
            __syncthreads();
        });
}
