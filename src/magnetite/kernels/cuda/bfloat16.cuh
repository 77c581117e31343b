// Two bfloat16 numbers in one word.

#ifdef __CUDACC__
// Two rounded numbers in one word, the first in its lower half.
__device__ inline unsigned pack(float low, float high) {
    unsigned word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}
#endif

__device__ inline float low(unsigned word) { return __uint_as_float(word << 16); }
__device__ inline float high(unsigned word) { return __uint_as_float(word & 0xffff0000u); }
