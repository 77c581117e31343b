// gelu and its derivative, from the normal distribution.

#ifdef __CUDACC__
__device__ inline float reciprocal(float number) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(number));
    return result;
}
__device__ inline float power_of_two(float number) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(number));
    return result;
}
#endif

// The normal distribution at x, up to 1e-7 (Abramowitz and Stegun, 7.1.26): Φ(−|x|) = e^(−x²/2) · a polynomial in t.
struct Normal {
    float size, bell, tail;  // |x|, e^(−x²/2), Φ(−|x|)

    __device__ explicit Normal(float x) {
        size = fabsf(x);
        bell = power_of_two(x * x * -0.72134752f);
        const float t = reciprocal(1.0f + 0.23164189f * size);
        const float sum = 0.127414796f + t * (-0.142248368f + t * (0.710706871f + t * (-0.726576014f + t * 0.530702715f)));
        tail = t * sum * bell;
    }
    __device__ float gelu(float x) const { return fmaxf(x, 0.0f) - size * tail; }
    __device__ float gelu_gradient(float x) const { return (x < 0.0f ? tail : 1.0f - tail) + 0.39894228f * x * bell; }
};
