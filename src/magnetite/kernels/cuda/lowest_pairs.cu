// The k lowest eigenpairs of many Hermitian matrices, one thread block per matrix.
//
//   1. Householder reflections make the matrix tridiagonal, L = Q T Qᴴ, a panel of columns at a time (LAPACK's ?hetrd).
//   2. Multisection with Sturm counts finds the k lowest eigenvalues of T, in double precision.
//   3. Twisted factorisations give their eigenvectors; close ones are made orthogonal.
//   4. The reflections are applied to these k vectors only.
//
// Compiled at run time with REAL (float or double), COMPLEX (0 or 1), THREADS, PANEL (columns), and RESIDENT (1 if the
// vectors are in shared memory until they are done). The matrix is overwritten in global memory: with the caches this is
// faster than a copy in shared memory, which leaves room for one or two blocks only. The result is not checked here: the
// caller verifies every matrix and solves it again if that fails.

constexpr int WARPS = THREADS / 32;

#if COMPLEX
struct __align__(2 * sizeof(REAL)) number {  // so that one instruction loads both
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
__device__ inline number shuffled(number a, int step) {
    return {__shfl_xor_sync(~0u, a.x, step), __shfl_xor_sync(~0u, a.y, step)};
}
#else
typedef REAL number;
__device__ inline number conj(number a) { return a; }
__device__ inline REAL real(number a) { return a; }
__device__ inline REAL imaginary(number) { return 0; }
__device__ inline REAL square(number a) { return a * a; }
__device__ inline number make(REAL x, REAL) { return x; }
__device__ inline number shuffled(number a, int step) { return __shfl_xor_sync(~0u, a, step); }
#endif

__device__ inline number shuffle_sum(number a) {
    for (int step = 16; step; step >>= 1) a = a + shuffled(a, step);
    return a;
}

// Sums over the lanes of several numbers: number `lane / 8` of a lane's own, with fewer exchanges than one sum at a time.
__device__ inline number shuffle_sums(const number (&a)[4]) {
    const bool upper = threadIdx.x & 16, odd = threadIdx.x & 8;
    const number first = (upper ? a[2] : a[0]) + shuffled(upper ? a[0] : a[2], 16);
    const number second = (upper ? a[3] : a[1]) + shuffled(upper ? a[1] : a[3], 16);
    number sum = (odd ? second : first) + shuffled(odd ? first : second, 8);
    for (int step = 4; step; step >>= 1) sum = sum + shuffled(sum, step);
    return sum;
}

// An entry of `vectors` is at least as large as a double: the real vectors of T share memory with the result.
constexpr int DOUBLES = sizeof(number) / sizeof(double);

struct Workspace {
    number *matrix;        // [n, n] in global memory: columns of L, then the reflections below the diagonal
    number *vectors;       // [k, stride] in shared or global memory
    int stride;
    number *column;        // [n] the column that is eliminated
    number *image;         // [n] of the reflection
    number *factor;        // [n] τ of each reflection
    number *reflections;   // [PANEL, n] V
    number *images;        // [PANEL, n] W: the matrix of the panel's beginning minus V Wᴴ + W Vᴴ is that of now
    number *overlaps;      // [2, PANEL] Wᴴ v and Vᴴ v
    number *partial;       // [WARPS]
    double *diagonal;      // [n] of T
    double *off;           // [n] beside the diagonal of T
    double *values;        // [k]
};

__device__ Workspace carve(char *shared, number *matrix, number *output, int n, int k) {
    Workspace s;
    s.matrix = matrix;
    s.diagonal = (double *)shared;
    s.off = s.diagonal + n;
    s.values = s.off + n;
    s.column = (number *)(s.values + k + (k & 1));
    s.image = s.column + n;
    s.factor = s.image + n;
    s.overlaps = s.factor + n + (n & 1);
    s.partial = s.overlaps + 2 * PANEL;
    s.reflections = s.partial + WARPS;
    s.images = s.reflections + PANEL * n;
    s.vectors = RESIDENT ? s.reflections : output;  // which are not needed any more
    s.stride = RESIDENT ? n | 1 : n;                // odd, against bank conflicts
    return s;
}

// Column j of the current matrix from its diagonal on, and its squared length below the subdiagonal in parts.
__device__ void take_column(Workspace s, int n, int j, int before) {
    REAL rest = 0;
    for (int r = threadIdx.x; r < n; r += THREADS) {
        if (r < j) continue;
        number x = s.matrix[(size_t)j * n + r];
        for (int l = 0; l < before; ++l)
            x = x - s.reflections[l * n + r] * conj(s.images[l * n + j]) - s.images[l * n + r] * conj(s.reflections[l * n + j]);
        s.column[r] = x;
        if (r > j + 1) rest += square(x);
    }
    const number sum = shuffle_sum(make(rest, 0));
    if ((threadIdx.x & 31) == 0) s.partial[threadIdx.x >> 5] = sum;
}

// Wᴴ v and Vᴴ v for the columns of the panel before, and A v for the matrix of the panel's beginning, whose rows are
// its conjugate columns: a warp takes four of them at once.
__device__ void multiply(Workspace s, int n, int j, int before) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, m = n - j - 1;
    const number *v = s.reflections + before * n + j + 1;
    for (int first = 4 * warp; first < m; first += 4 * WARPS) {
        const number *rows[4];
        number sum[4];
#pragma unroll
        for (int t = 0; t < 4; ++t) {
            rows[t] = s.matrix + (size_t)(j + 1 + min(first + t, m - 1)) * n + j + 1;
            sum[t] = make(0, 0);
        }
#pragma unroll 2
        for (int c = lane; c < m; c += 32) {
            const number entry = v[c];
#pragma unroll
            for (int t = 0; t < 4; ++t) sum[t] = sum[t] + conj(rows[t][c]) * entry;
        }
        const number total = shuffle_sums(sum);
        if ((lane & 7) == 0 && first + lane / 8 < m) s.image[j + 1 + first + lane / 8] = total;
    }
    for (int d = WARPS - 1 - warp; d < 2 * before; d += WARPS) {
        const number *other = (d < before ? s.images + d * n : s.reflections + (d - before) * n) + j + 1;
        number sum = make(0, 0);
        for (int r = lane; r < m; r += 32) sum = sum + conj(other[r]) * v[r];
        sum = shuffle_sum(sum);
        if (lane == 0) s.overlaps[d < before ? d : PANEL + d - before] = sum;
    }
}

// A ← A − V Wᴴ − W Vᴴ from row and column `start` on.
__device__ void update(Workspace s, int n, int start, int columns) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int first = start + 4 * warp; first < n; first += 4 * WARPS) {
        int column[4];
#pragma unroll
        for (int t = 0; t < 4; ++t) column[t] = min(first + t, n - 1);
        for (int r = start + lane; r < n; r += 32) {
            number x[4];
#pragma unroll
            for (int t = 0; t < 4; ++t) x[t] = s.matrix[(size_t)column[t] * n + r];
            for (int l = 0; l < columns; ++l) {
                const number *reflection = s.reflections + l * n, *image = s.images + l * n;
                const number v = reflection[r], w = image[r];
#pragma unroll
                for (int t = 0; t < 4; ++t) x[t] = x[t] - v * conj(image[column[t]]) - w * conj(reflection[column[t]]);
            }
#pragma unroll
            for (int t = 0; t < 4; ++t)
                if (first + t < n) s.matrix[(size_t)column[t] * n + r] = x[t];
        }
    }
}

// A column that is shorter below its diagonal, relative to T so far, is rounding errors where the matrix falls into parts:
// it is set to zero, for a reflection would mix the parts that follow. The caller's limits, 2e-5 and 1e-10, leave room.
constexpr double SPLIT = sizeof(REAL) == 4 ? 4e-6 : 1e-11;

// Stage 1. Five barriers per column. Thread r mod THREADS alone changes entry r of vectors. Within a panel, the matrix is
// only read: once per column, and once more and written per panel.
__device__ void tridiagonalise(Workspace s, int n) {
    const int thread = threadIdx.x;
    REAL largest = 0;
    for (int start = 0; start < n - 1; start += PANEL) {
        const int columns = min(PANEL, n - 1 - start);
        for (int before = 0; before < columns; ++before) {
            const int j = start + before;
            take_column(s, n, j, before);
            __syncthreads();
            REAL rest = 0;
            for (int w = 0; w < WARPS; ++w) rest += real(s.partial[w]);
            const number alpha = s.column[j + 1];
            REAL across = imaginary(alpha) * imaginary(alpha) + rest, beta = real(alpha);
            const REAL norm = sqrt(beta * beta + across), size = fabs(real(s.column[j]));
            if (size > largest) largest = size;
            if (norm < (REAL)SPLIT * largest) across = beta = 0;
            if (norm > largest) largest = norm;
            number tau = make(0, 0), scale = make(0, 0);
            if (across > 0) {
                beta = real(alpha) >= 0 ? -norm : norm;
                tau = make((beta - real(alpha)) / beta, -imaginary(alpha) / beta);
                const number gap = make(real(alpha) - beta, imaginary(alpha));
                scale = (1 / square(gap)) * conj(gap);
            }
            number *v = s.reflections + before * n, *w = s.images + before * n;
            for (int r = thread; r < n; r += THREADS)
                if (r > j) s.matrix[(size_t)j * n + r] = v[r] = r == j + 1 ? make(1, 0) : s.column[r] * scale;
            if (thread == 0) {
                s.diagonal[j] = real(s.column[j]);
                s.off[j] = beta;
                s.factor[j] = tau;
            }
            __syncthreads();
            if (across > 0) multiply(s, n, j, before);  // the same for all threads
            __syncthreads();
            number dot = make(0, 0);
            for (int r = thread; r < n; r += THREADS) {
                if (r <= j) continue;
                number sum = make(0, 0);
                if (across > 0) {
                    sum = s.image[r];
                    for (int l = 0; l < before; ++l)
                        sum = sum - s.reflections[l * n + r] * s.overlaps[l] - s.images[l * n + r] * s.overlaps[PANEL + l];
                }
                w[r] = tau * sum;
                dot = dot + conj(w[r]) * v[r];
            }
            dot = shuffle_sum(dot);
            if ((thread & 31) == 0) s.partial[thread >> 5] = dot;
            __syncthreads();
            dot = make(0, 0);
            for (int part = 0; part < WARPS; ++part) dot = dot + s.partial[part];
            const number shift = (REAL)-0.5 * (tau * dot);
            for (int r = thread; r < n; r += THREADS)
                if (r > j) w[r] = w[r] + shift * v[r];
            __syncthreads();
        }
        update(s, n, start + columns, columns);
        __syncthreads();
    }
    if (thread == 0) s.diagonal[n - 1] = real(s.matrix[(size_t)n * n - 1]);
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

constexpr double LARGE = 1e300, EQUAL = 1e-13;  // of T scaled to norm 1

__device__ inline double guarded(double pivot) { return fabs(pivot) < 1e-18 ? copysign(1e-18, pivot) : pivot; }

// Stage 3, one thread per vector: with D⁺ from above and D⁻ from below, start where γ = D⁺ + D⁻ − (d − λ) is smallest.
// T is block diagonal where `off` vanishes (the graph has several components). Of an eigenvalue that several blocks share,
// the first copies start in the first of these blocks, as many as it holds, and the next in the second.
__device__ void twisted_vector(Workspace s, int n, int k, int j) {
    double *vector = (double *)(s.vectors + (size_t)j * s.stride);
    const double *d = s.diagonal, *e = s.off;
    const double value = s.values[j];
    double pivot = d[n - 1] - value;
    vector[(n - 1) * DOUBLES] = pivot;
    for (int i = n - 2; i >= 0; --i) vector[i * DOUBLES] = pivot = d[i] - value - e[i] * e[i] / guarded(pivot);
    int first = j, last = j;
    while (first > 0 && s.values[first] - s.values[first - 1] < EQUAL) --first;
    while (last < k - 1 && s.values[last + 1] - s.values[last] < EQUAL) ++last;
    int copy = j - first;
    double smallest = LARGE, in_part = LARGE, above = 0;
    int twist = 0, twist_in_part = 0, begin = 0;
    for (int i = 0; i < n; ++i) {
        above = d[i] - value - (i ? e[i - 1] * e[i - 1] / guarded(above) : 0);
        const double size = fabs(above + vector[i * DOUBLES] - (d[i] - value));
        vector[i * DOUBLES] = above;
        if (size < in_part) in_part = size, twist_in_part = i;
        if (i < n - 1 && e[i] != 0) continue;
        bool chosen = false;
        if (first < last) {
            const int upper = count_below(d + begin, e + begin, i + 1 - begin, s.values[last] + EQUAL / 2);
            const int copies = upper - count_below(d + begin, e + begin, i + 1 - begin, s.values[first] - EQUAL / 2);
            chosen = copy >= 0 && copy < copies;
            copy -= copies;
        }
        if (chosen || in_part < smallest) smallest = chosen ? -1 : in_part, twist = twist_in_part;
        in_part = LARGE;
        begin = i + 1;
    }
    pivot = d[n - 1] - value;
    for (int i = n - 1; i > twist; --i) {
        vector[i * DOUBLES] = pivot;
        pivot = d[i - 1] - value - e[i - 1] * e[i - 1] / guarded(pivot);
    }
    double norm = 1, entry = 1;
    for (int i = twist - 1; i >= 0; --i) {
        entry *= -e[i] / guarded(vector[i * DOUBLES]);
        vector[i * DOUBLES] = entry;
        norm += entry * entry;
    }
    entry = 1;
    for (int i = twist + 1; i < n; ++i) {
        entry *= -e[i - 1] / guarded(vector[i * DOUBLES]);
        vector[i * DOUBLES] = entry;
        norm += entry * entry;
    }
    vector[twist * DOUBLES] = 1;
    const double scale = rsqrt(norm);
    for (int i = 0; i < n; ++i) vector[i * DOUBLES] *= scale;
}

// The first warp orthogonalises the vectors of close eigenvalues.
__device__ void separate(Workspace s, int n, int k) {
    const int lane = threadIdx.x;
    int start = 0;
    for (int j = 1; j < k; ++j) {
        if (s.values[j] - s.values[j - 1] > 1e-3) start = j;
        if (start == j) continue;
        double *own = (double *)(s.vectors + (size_t)j * s.stride);
        double norm = 0;
        for (int i = start; i < j; ++i) {
            const double *other = (double *)(s.vectors + (size_t)i * s.stride);
            double dot = 0;
            for (int r = lane; r < n; r += 32) dot += other[r * DOUBLES] * own[r * DOUBLES];
            for (int step = 16; step; step >>= 1) dot += __shfl_xor_sync(~0u, dot, step);
            for (int r = lane; r < n; r += 32) own[r * DOUBLES] -= dot * other[r * DOUBLES];
        }
        for (int r = lane; r < n; r += 32) norm += own[r * DOUBLES] * own[r * DOUBLES];
        for (int step = 16; step; step >>= 1) norm += __shfl_xor_sync(~0u, norm, step);
        const double scale = rsqrt(norm);
        for (int r = lane; r < n; r += 32) own[r * DOUBLES] *= scale;
        __syncwarp();
    }
}

// Stage 4, one warp per vector: z ← (I − τ v vᴴ) z, last reflection first.
__device__ void reflect(Workspace s, int n, int k) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int column = warp; column < k; column += WARPS)
        for (int j = n - 2; j >= 0; --j) {
            const number *v = s.matrix + (size_t)j * n + j + 1;
            number *z = s.vectors + (size_t)column * s.stride + j + 1;
            const int m = n - j - 1;
            number dot = make(0, 0);
            for (int r = lane; r < m; r += 32) dot = dot + conj(v[r]) * z[r];
            dot = s.factor[j] * shuffle_sum(dot);
            for (int r = lane; r < m; r += 32) z[r] = z[r] - v[r] * dot;
            __syncwarp();
        }
}

extern "C" __global__ void __launch_bounds__(THREADS, THREADS > 256 ? 1 : 768 / THREADS) lowest_pairs(
    number *matrices, REAL *values, number *vectors, int n, int k, int lanes, int rounds) {
    extern __shared__ __align__(16) char shared[];
    number *output = vectors + (size_t)blockIdx.x * n * k;
    const Workspace s = carve(shared, matrices + (size_t)blockIdx.x * n * n, output, n, k);
    const int thread = threadIdx.x;
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
    for (int j = 0; j < k; ++j)
        for (int r = thread; r < n; r += THREADS) {
            number *entry = s.vectors + (size_t)j * s.stride + r;
            *entry = make((REAL) * (double *)entry, 0);
        }
    __syncthreads();
    reflect(s, n, k);
    __syncthreads();
    // The matrix is stored row by row; read by columns it is its transpose, which is its conjugate.
    for (int j = 0; j < k; ++j)
        for (int r = thread; r < n; r += THREADS) output[j * n + r] = conj(s.vectors[(size_t)j * s.stride + r]);
    for (int j = thread; j < k; j += THREADS) values[(size_t)blockIdx.x * k + j] = (REAL)(scale * s.values[j]);
}
