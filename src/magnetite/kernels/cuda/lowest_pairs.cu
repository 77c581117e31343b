// The k lowest eigenpairs of many Hermitian matrices, one thread block per matrix.
//
//   1. Householder reflections make the matrix tridiagonal, L = Q T Qᴴ (LAPACK's ?hetd2).
//   2. Multisection with Sturm counts finds the k lowest eigenvalues of T, in double precision.
//   3. Twisted factorisations give their eigenvectors; close ones are made orthogonal.
//   4. The reflections are applied to these k vectors only.
//
// Compiled at run time with REAL (float or double), COMPLEX (0 or 1), THREADS, and TILES (32 rows each, as many as needed).
// The matrix is overwritten in global memory: with the caches this is faster than a copy in shared memory, which leaves
// room for one or two blocks only. The result is not checked here: the caller verifies every matrix and solves it again if
// that fails.

constexpr int WARPS = THREADS / 32;

#if COMPLEX
struct number {
    REAL x, y;
};
__device__ inline number operator+(number a, number b) { return {a.x + b.x, a.y + b.y}; }
__device__ inline number operator-(number a, number b) { return {a.x - b.x, a.y - b.y}; }
__device__ inline number operator*(number a, number b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
__device__ inline number operator*(REAL s, number a) { return {s * a.x, s * a.y}; }
__device__ inline number conj(number a) { return {a.x, -a.y}; }
__device__ inline REAL real(number a) { return a.x; }
__device__ inline REAL imaginary(number a) { return a.y; }
__device__ inline REAL square(number a) { return a.x * a.x + a.y * a.y; }
__device__ inline number make(REAL x, REAL y) { return {x, y}; }
__device__ inline number shuffle_sum(number a) {
    for (int step = 16; step; step >>= 1) {
        a.x += __shfl_xor_sync(~0u, a.x, step);
        a.y += __shfl_xor_sync(~0u, a.y, step);
    }
    return a;
}
#else
typedef REAL number;
__device__ inline number conj(number a) { return a; }
__device__ inline REAL real(number a) { return a; }
__device__ inline REAL imaginary(number) { return 0; }
__device__ inline REAL square(number a) { return a * a; }
__device__ inline number make(REAL x, REAL) { return x; }
__device__ inline number shuffle_sum(number a) {
    for (int step = 16; step; step >>= 1) a += __shfl_xor_sync(~0u, a, step);
    return a;
}
#endif

// An entry of `vectors` is at least as large as a double: the real vectors of T share memory with the result.
constexpr int DOUBLES = sizeof(number) / sizeof(double);

struct Workspace {
    number *matrix;      // [n, n] in global memory: columns of L, then the reflections below the diagonal
    number *vectors;     // [n, k]
    number *reflection;  // [n]
    number *image;       // [n]
    number *partial;     // [WARPS, n]
    number *factor;      // [n] τ of each reflection
    double *diagonal;    // [n] of T
    double *off;         // [n] beside the diagonal of T
    double *values;      // [k]
};

__device__ Workspace carve(char *shared, number *matrix, int n, int k) {
    Workspace s;
    s.matrix = matrix;
    s.diagonal = (double *)shared;
    s.off = s.diagonal + n;
    s.values = s.off + n;
    s.vectors = (number *)(s.values + k + (k & 1));
    s.reflection = s.vectors + n * k + ((n * k) & 1);
    s.image = s.reflection + n;
    s.factor = s.image + n;
    s.partial = s.factor + n;
    return s;
}

// Stage 1. Four barriers per column; every warp computes the reductions that it needs itself.
__device__ void tridiagonalise(Workspace s, int n) {
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
    for (int j = 0; j < n - 1; ++j) {
        const int m = n - j - 1;
        number *column = s.matrix + j * n + j + 1;
        REAL rest = 0;
        for (int r = lane + 1; r < m; r += 32) rest += square(column[r]);
        for (int step = 16; step; step >>= 1) rest += __shfl_xor_sync(~0u, rest, step);
        const number alpha = column[0];
        const REAL across = imaginary(alpha) * imaginary(alpha) + rest;
        REAL beta = real(alpha);
        number tau = make(0, 0), scale = make(0, 0);
        if (across > 0) {
            const REAL norm = sqrt(real(alpha) * real(alpha) + across);
            beta = real(alpha) >= 0 ? -norm : norm;
            tau = make((beta - real(alpha)) / beta, -imaginary(alpha) / beta);
            const number gap = make(real(alpha) - beta, imaginary(alpha));
            scale = (1 / square(gap)) * conj(gap);
        }
        for (int r = thread; r < m; r += THREADS) s.reflection[r] = r == 0 ? make(1, 0) : column[r] * scale;
        if (thread == 0) {
            s.diagonal[j] = real(s.matrix[j * n + j]);
            s.off[j] = beta;
            s.factor[j] = tau;
        }
        __syncthreads();
        if (across > 0) {  // the same for all threads
            number sum[TILES];
#pragma unroll
            for (int t = 0; t < TILES; ++t) sum[t] = make(0, 0);
            for (int c = warp; c < m; c += WARPS) {
                const number v = s.reflection[c];
                const number *source = s.matrix + (j + 1 + c) * n + j + 1;
#pragma unroll
                for (int t = 0; t < TILES; ++t)
                    if (lane + 32 * t < m) sum[t] = sum[t] + source[lane + 32 * t] * v;
            }
#pragma unroll
            for (int t = 0; t < TILES; ++t)
                if (lane + 32 * t < m) s.partial[warp * n + lane + 32 * t] = sum[t];
        }
        __syncthreads();
        for (int r = thread; r < m; r += THREADS) {
            column[r] = s.reflection[r];
            number total = make(0, 0);
            if (across > 0)
                for (int w = 0; w < WARPS; ++w) total = total + s.partial[w * n + r];
            s.image[r] = tau * total;
        }
        __syncthreads();
        if (across > 0) {
            number dot = make(0, 0);
            for (int r = lane; r < m; r += 32) dot = dot + conj(s.image[r]) * s.reflection[r];
            const number shift = (REAL)-0.5 * (tau * shuffle_sum(dot));
            number v[TILES], w[TILES];
#pragma unroll
            for (int t = 0; t < TILES; ++t)
                if (lane + 32 * t < m) {
                    v[t] = s.reflection[lane + 32 * t];
                    w[t] = s.image[lane + 32 * t] + shift * v[t];
                }
            for (int c = warp; c < m; c += WARPS) {
                const number vc = s.reflection[c], wc = conj(s.image[c] + shift * vc), vcc = conj(vc);
                number *target = s.matrix + (j + 1 + c) * n + j + 1;
#pragma unroll
                for (int t = 0; t < TILES; ++t)
                    if (lane + 32 * t < m) target[lane + 32 * t] = target[lane + 32 * t] - v[t] * wc - w[t] * vcc;
            }
        }
        __syncthreads();
    }
    if (thread == 0) s.diagonal[n - 1] = real(s.matrix[n * n - 1]);
    __syncthreads();
}

// Number of eigenvalues of T below x: sign changes of the leading minors, which are rescaled from time to time.
__device__ int count_below(const double *diagonal, const double *off, int n, double x) {
    double before = 1, now = diagonal[0] - x;
    int count = 0;
    for (int i = 0;;) {
        if (now == 0) now = -1e-30 * before;
        count += (now < 0) != (before < 0);
        if (++i == n) return count;
        const double next = (diagonal[i] - x) * now - off[i - 1] * off[i - 1] * before;
        before = now;
        now = next;
        if ((i & 15) == 0) {
            const double size = fabs(before) + fabs(now);
            const double factor = size > 1e60 ? 1e-60 : size < 1e-60 ? 1e60 : 1;
            before *= factor;
            now *= factor;
        }
    }
}

// Stage 2. A group of `lanes` threads divides the interval of one eigenvalue into lanes + 1 intervals at a time.
__device__ void multisection(Workspace s, int n, int k, int lanes, int rounds) {
    const int thread = threadIdx.x, lane = thread & 31;
    const int first = lane & ~(lanes - 1), place = lane - first;
    const unsigned group = (lanes == 32 ? ~0u : (1u << lanes) - 1) << first;
    for (int base = 0; base < k; base += THREADS / lanes) {
        const int which = base + thread / lanes, number_of = which < k ? which : k - 1;
        double low = -1.0625, high = 1.0625;  // T was scaled so that Gershgorin's circles lie in [-1, 1]
        for (int round = 0; round < rounds; ++round) {
            const double part = (high - low) / (lanes + 1);
            const bool above = count_below(s.diagonal, s.off, n, low + part * (place + 1)) > number_of;
            const int below = lanes - __popc(__ballot_sync(~0u, above) & group);
            high = below == lanes ? high : low + part * (below + 1);
            low = below == 0 ? low : low + part * below;
        }
        if (place == 0 && which < k) s.values[which] = 0.5 * (low + high);
    }
    __syncthreads();
}

constexpr double LARGE = 1e300, EQUAL = 1e-12, SPLIT = 1e-14, SHARED_VALUE = 1e-9;  // of T scaled to norm 1

__device__ inline double guarded(double pivot) { return fabs(pivot) < 1e-18 ? copysign(1e-18, pivot) : pivot; }

// Stage 3, one thread per vector: with D⁺ from above and D⁻ from below, start where γ = D⁺ + D⁻ − (d − λ) is smallest.
// T is block diagonal where `off` vanishes (the graph has several components). An eigenvalue that several blocks share
// appears once for each: the first copy starts in the first of these blocks, the second in the second.
__device__ void twisted_vector(Workspace s, int n, int k, int j) {
    double *vector = (double *)s.vectors + j * DOUBLES;
    const int stride = k * DOUBLES;
    const double *d = s.diagonal, *e = s.off;
    const double value = s.values[j];
    double pivot = d[n - 1] - value;
    vector[(n - 1) * stride] = pivot;
    for (int i = n - 2; i >= 0; --i) vector[i * stride] = pivot = d[i] - value - e[i] * e[i] / guarded(pivot);
    int copy = 0;
    while (copy < j && value - s.values[j - copy - 1] < EQUAL) ++copy;
    double smallest = LARGE, in_part = LARGE, above = 0;
    int twist = 0, twist_in_part = 0, parts = 0;
    for (int i = 0; i < n; ++i) {
        above = d[i] - value - (i ? e[i - 1] * e[i - 1] / guarded(above) : 0);
        const double size = fabs(above + vector[i * stride] - (d[i] - value));
        vector[i * stride] = above;
        if (size < in_part) in_part = size, twist_in_part = i;
        if (i < n - 1 && fabs(e[i]) >= SPLIT) continue;
        const bool chosen = in_part < SHARED_VALUE && parts++ == copy;
        if (chosen || in_part < smallest) smallest = chosen ? -1 : in_part, twist = twist_in_part;
        in_part = LARGE;
    }
    pivot = d[n - 1] - value;
    for (int i = n - 1; i > twist; --i) {
        vector[i * stride] = pivot;
        pivot = d[i - 1] - value - e[i - 1] * e[i - 1] / guarded(pivot);
    }
    double norm = 1, entry = 1;
    for (int i = twist - 1; i >= 0; --i) {
        entry *= -e[i] / guarded(vector[i * stride]);
        vector[i * stride] = entry;
        norm += entry * entry;
    }
    entry = 1;
    for (int i = twist + 1; i < n; ++i) {
        entry *= -e[i - 1] / guarded(vector[i * stride]);
        vector[i * stride] = entry;
        norm += entry * entry;
    }
    vector[twist * stride] = 1;
    const double scale = rsqrt(norm);
    for (int i = 0; i < n; ++i) vector[i * stride] *= scale;
}

// The first warp orthogonalises the vectors of close eigenvalues.
__device__ void separate(Workspace s, int n, int k) {
    const int lane = threadIdx.x;
    const int stride = k * DOUBLES;
    double *vectors = (double *)s.vectors;
    int start = 0;
    for (int j = 1; j < k; ++j) {
        if (s.values[j] - s.values[j - 1] > 1e-3) start = j;
        if (start == j) continue;
        double norm = 0;
        for (int i = start; i < j; ++i) {
            double dot = 0;
            for (int r = lane; r < n; r += 32) dot += vectors[r * stride + i * DOUBLES] * vectors[r * stride + j * DOUBLES];
            for (int step = 16; step; step >>= 1) dot += __shfl_xor_sync(~0u, dot, step);
            for (int r = lane; r < n; r += 32) vectors[r * stride + j * DOUBLES] -= dot * vectors[r * stride + i * DOUBLES];
        }
        for (int r = lane; r < n; r += 32) norm += vectors[r * stride + j * DOUBLES] * vectors[r * stride + j * DOUBLES];
        for (int step = 16; step; step >>= 1) norm += __shfl_xor_sync(~0u, norm, step);
        const double scale = rsqrt(norm);
        for (int r = lane; r < n; r += 32) vectors[r * stride + j * DOUBLES] *= scale;
        __syncwarp();
    }
}

// Stage 4, one warp per vector: z ← (I − τ v vᴴ) z, last reflection first.
__device__ void reflect(Workspace s, int n, int k) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int column = warp; column < k; column += WARPS)
        for (int j = n - 2; j >= 0; --j) {
            const number *v = s.matrix + j * n + j + 1;
            number *z = s.vectors + (j + 1) * k + column;
            const int m = n - j - 1;
            number dot = make(0, 0);
            for (int r = lane; r < m; r += 32) dot = dot + conj(v[r]) * z[r * k];
            dot = s.factor[j] * shuffle_sum(dot);
            for (int r = lane; r < m; r += 32) z[r * k] = z[r * k] - v[r] * dot;
            __syncwarp();
        }
}

extern "C" __global__ void __launch_bounds__(THREADS, THREADS > 256 ? 1 : 768 / THREADS) lowest_pairs(
    number *matrices, REAL *values, number *vectors, int n, int k, int lanes, int rounds) {
    extern __shared__ __align__(16) char shared[];
    const Workspace s = carve(shared, matrices + (size_t)blockIdx.x * n * n, n, k);
    const int thread = threadIdx.x;
    // The matrix is stored row by row; read by columns it is its transpose, which is its conjugate.
    for (int i = thread; i < n * n; i += THREADS) s.matrix[i] = conj(s.matrix[i]);
    __syncthreads();
    tridiagonalise(s, n);

    double bound = 0;
    for (int i = thread & 31; i < n; i += 32) {
        const double left = i > 0 ? fabs(s.off[i - 1]) : 0, right = i < n - 1 ? fabs(s.off[i]) : 0;
        bound = fmax(bound, fabs(s.diagonal[i]) + left + right);
    }
    for (int step = 16; step; step >>= 1) bound = fmax(bound, __shfl_xor_sync(~0u, bound, step));
    const double scale = bound > 0 ? bound : 1;
    __syncthreads();
    for (int i = thread; i < n; i += THREADS) {
        s.diagonal[i] /= scale;
        if (i < n - 1) s.off[i] /= scale;
    }
    __syncthreads();
    multisection(s, n, k, lanes, rounds);
    if (thread < k) twisted_vector(s, n, k, thread);
    __syncthreads();
    if (thread < 32) separate(s, n, k);
    __syncthreads();
    for (int i = thread; i < n * k; i += THREADS) {
        const double z = ((double *)s.vectors)[i * DOUBLES];
        s.vectors[i] = make((REAL)z, 0);
    }
    __syncthreads();
    reflect(s, n, k);
    __syncthreads();
    number *output = vectors + (size_t)blockIdx.x * n * k;
    for (int i = thread; i < n * k; i += THREADS) output[i] = s.vectors[i];
    for (int j = thread; j < k; j += THREADS) values[(size_t)blockIdx.x * k + j] = (REAL)(scale * s.values[j]);
}
