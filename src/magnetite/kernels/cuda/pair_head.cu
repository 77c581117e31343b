// The first and last layer of PairHead, one warp per query pair; between them is a matrix product.
//
//   first[p] = gelu(norm(source[u] + target[v])) of a pair p = (u, v) of rows, in bfloat16
//   last[p]  = Σ_c w[c] gelu(norm(rows[p]))[c]
//   norm(x)  = (x − mean) / √(variance + 1e-5) · scale + shift
//
// A lane has HIDDEN / 32 neighbouring channels, so that a warp reads a whole row at once. The backward pass recomputes
// everything from the inputs. Gradients of scale, shift and w are summed in registers over all pairs of a warp and written
// once. Gradients of source and target are added to memory atomically; a warp has consecutive pairs, and sums those of the
// same u first. Pairs whose gradient is zero, such as the padding of a batch, are skipped.
//
// Compiled at run time with HIDDEN, which is 64, 128, 256 or 512.

#include "bfloat16.cuh"
#include "lanes_sum.cuh"
#include "normal.cuh"

constexpr int R = HIDDEN / 32, WARPS = 8;
constexpr float SMALLEST = 1e-5f;

struct alignas(R < 4 ? 8 : 16) Numbers {
    float at[R];
};
struct alignas(R < 8 ? 2 * R : 16) Halves {
    unsigned words[R / 2];

    __device__ float at(int r) const { return r % 2 ? high(words[r / 2]) : low(words[r / 2]); }
};

__device__ inline Halves rounded(const float (&numbers)[R]) {
    Halves halves;
#pragma unroll
    for (int r = 0; r < R; r += 2) halves.words[r / 2] = pack(numbers[r], numbers[r + 1]);
    return halves;
}

__device__ inline float warp_sum(float value) { return lanes_sum<1, 32>(value); }

// Add to memory that other warps add to as well, and that none reads.
__device__ inline void add(float *place, const float (&numbers)[R]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && HIDDEN >= 128
#pragma unroll
    for (int r = 0; r < R; r += 4)
        asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(place + r), "f"(numbers[r]), "f"(numbers[r + 1]),
                     "f"(numbers[r + 2]), "f"(numbers[r + 3]));
#else
#pragma unroll
    for (int r = 0; r < R; r++) atomicAdd(place + r, numbers[r]);
#endif
}

// The lane's channels of a row, less the mean and divided by the standard deviation.
struct Unit {
    float at[R], inverse;

    __device__ explicit Unit(const float (&x)[R]) {
        float sum = 0.0f, squares = 0.0f;
#pragma unroll
        for (int r = 0; r < R; r++) sum += x[r];
        const float mean = warp_sum(sum) / HIDDEN;
#pragma unroll
        for (int r = 0; r < R; r++) at[r] = x[r] - mean, squares += at[r] * at[r];
        inverse = rsqrtf(warp_sum(squares) / HIDDEN + SMALLEST);
#pragma unroll
        for (int r = 0; r < R; r++) at[r] *= inverse;
    }

    // From gradients of the normalised channels to those of x.
    __device__ void back(float (&gradients)[R]) const {
        float sum = 0.0f, along = 0.0f;
#pragma unroll
        for (int r = 0; r < R; r++) sum += gradients[r], along += gradients[r] * at[r];
        sum = warp_sum(sum) / HIDDEN, along = warp_sum(along) / HIDDEN;
#pragma unroll
        for (int r = 0; r < R; r++) gradients[r] = inverse * (gradients[r] - sum - at[r] * along);
    }
};

// Scale and shift of the lane's channels, and the sums of their gradients.
struct Affine {
    Numbers scale, shift;
    float of_scale[R] = {}, of_shift[R] = {};

    __device__ Affine(const Numbers *scales, const Numbers *shifts, int lane) : scale(scales[lane]), shift(shifts[lane]) {}
    __device__ float operator()(const Unit &unit, int r) const { return unit.at[r] * scale.at[r] + shift.at[r]; }

    // From gradients of the result to those of x.
    __device__ void back(const Unit &unit, float (&gradients)[R]) {
#pragma unroll
        for (int r = 0; r < R; r++) {
            of_scale[r] += gradients[r] * unit.at[r], of_shift[r] += gradients[r];
            gradients[r] *= scale.at[r];
        }
        unit.back(gradients);
    }
};

// The position of a lane, and the pairs of its warp.
struct Lane {
    int lane = threadIdx.x % 32, warp = blockIdx.x * WARPS + threadIdx.x / 32, first, end;

    __device__ explicit Lane(int pairs) {
        const int each = (pairs + gridDim.x * WARPS - 1) / (gridDim.x * WARPS);
        first = min(warp * each, pairs), end = min(first + each, pairs);
    }
    __device__ long long part(long long row) const { return row * 32 + lane; }  // index of the lane's channels of a row
    __device__ void put(float *sums, int which, int count, const float (&numbers)[R]) const {
        float *place = sums + (((long long)warp * count + which) * 32 + lane) * R;
#pragma unroll
        for (int r = 0; r < R; r++) place[r] = numbers[r];
    }
};

// Call use(pair, item) for the pairs of a warp; `read` loads the item of the next pair in advance.
template <class Read, class Use> __device__ inline void for_each_pair(const Lane &at, Read read, Use use) {
    if (at.first >= at.end) return;
    auto next = read(at.first);
    for (int pair = at.first; pair < at.end; pair++) {
        const auto item = next;
        if (pair + 1 < at.end) next = read(pair + 1);
        use(pair, item);
    }
}

struct Ends {
    long long u, v;
};

__device__ inline Unit of_ends(const Numbers *source, const Numbers *target, const Ends &ends, const Lane &at) {
    const Numbers one = source[at.part(ends.u)], two = target[at.part(ends.v)];
    float x[R];
#pragma unroll
    for (int r = 0; r < R; r++) x[r] = one.at[r] + two.at[r];
    return Unit(x);
}

__device__ inline Unit of_row(const Halves &given) {
    float x[R];
#pragma unroll
    for (int r = 0; r < R; r++) x[r] = given.at(r);
    return Unit(x);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    pair_first_forward(const Numbers *__restrict__ source, const Numbers *__restrict__ target, const long long *__restrict__ us,
                       const long long *__restrict__ vs, const Numbers *scales, const Numbers *shifts, Halves *first,
                       int pairs) {
    const Lane at(pairs);
    const Affine affine(scales, shifts, at.lane);
    const auto read = [&](int pair) { return Ends{us[pair], vs[pair]}; };
    for_each_pair(at, read, [&](int pair, const Ends &ends) {
        const Unit unit = of_ends(source, target, ends, at);
        float y[R];
#pragma unroll
        for (int r = 0; r < R; r++) {
            const float x = affine(unit, r);
            y[r] = Normal(x).gelu(x);
        }
        first[at.part(pair)] = rounded(y);
    });
}

// sums[warp, 2, c]: gradients of scale and shift.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    pair_first_backward(const Numbers *__restrict__ source, const Numbers *__restrict__ target,
                        const long long *__restrict__ us, const long long *__restrict__ vs, const Numbers *scales,
                        const Numbers *shifts, const Halves *__restrict__ upper, float *of_source, float *of_target,
                        float *sums, int pairs) {
    struct Item {
        Ends ends;
        Halves above;
    };
    const Lane at(pairs);
    Affine affine(scales, shifts, at.lane);
    float held[R] = {};
    long long holder = -1;  // the u whose gradients are in registers
    const auto read = [&](int pair) { return Item{{us[pair], vs[pair]}, upper[at.part(pair)]}; };
    for_each_pair(at, read, [&](int, const Item &item) {
        bool any = false;
        float gradients[R];
#pragma unroll
        for (int r = 0; r < R; r++) gradients[r] = item.above.at(r), any |= gradients[r] != 0.0f;
        if (!__ballot_sync(~0u, any)) return;
        const Unit unit = of_ends(source, target, item.ends, at);
#pragma unroll
        for (int r = 0; r < R; r++) {
            const float x = affine(unit, r);
            gradients[r] *= Normal(x).gelu_gradient(x);
        }
        affine.back(unit, gradients);
        if (item.ends.u != holder) {
            if (holder >= 0) add(of_source + at.part(holder) * R, held);
            holder = item.ends.u;
#pragma unroll
            for (int r = 0; r < R; r++) held[r] = 0.0f;
        }
#pragma unroll
        for (int r = 0; r < R; r++) held[r] += gradients[r];
        add(of_target + at.part(item.ends.v) * R, gradients);
    });
    if (holder >= 0) add(of_source + at.part(holder) * R, held);
    at.put(sums, 0, 2, affine.of_scale);
    at.put(sums, 1, 2, affine.of_shift);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    pair_last_forward(const Halves *__restrict__ rows, const Numbers *scales, const Numbers *shifts, const Numbers *weights,
                      float *last, int pairs) {
    const Lane at(pairs);
    const Affine affine(scales, shifts, at.lane);
    const Numbers weight = weights[at.lane];
    for_each_pair(at, [&](int pair) { return rows[at.part(pair)]; }, [&](int pair, const Halves &row) {
        const Unit unit = of_row(row);
        float sum = 0.0f;
#pragma unroll
        for (int r = 0; r < R; r++) {
            const float x = affine(unit, r);
            sum += weight.at[r] * Normal(x).gelu(x);
        }
        sum = warp_sum(sum);
        if (at.lane == 0) last[pair] = sum;
    });
}

// sums[warp, 3, c]: gradients of scale, shift and weight.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    pair_last_backward(const Halves *__restrict__ rows, const Numbers *scales, const Numbers *shifts, const Numbers *weights,
                       const float *__restrict__ upper, Halves *of_rows, float *sums, int pairs) {
    struct Item {
        Halves row;
        float above;
    };
    const Lane at(pairs);
    Affine affine(scales, shifts, at.lane);
    const Numbers weight = weights[at.lane];
    float of_weight[R] = {};
    const auto read = [&](int pair) { return Item{rows[at.part(pair)], upper[pair]}; };
    for_each_pair(at, read, [&](int pair, const Item &item) {
        float gradients[R] = {};
        if (item.above != 0.0f) {
            const Unit unit = of_row(item.row);
#pragma unroll
            for (int r = 0; r < R; r++) {
                const float x = affine(unit, r);
                const Normal normal(x);
                of_weight[r] += item.above * normal.gelu(x);
                gradients[r] = item.above * weight.at[r] * normal.gelu_gradient(x);
            }
            affine.back(unit, gradients);
        }
        of_rows[at.part(pair)] = rounded(gradients);
    });
    at.put(sums, 0, 3, affine.of_scale);
    at.put(sums, 1, 3, affine.of_shift);
    at.put(sums, 2, 3, of_weight);
}
