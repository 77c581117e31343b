// The sum over the lanes of a warp whose numbers differ in the bits FIRST to END / 2 only: over all lanes with FIRST = 1 and
// END = 32; over four neighbouring lanes, which hold a row of a product, with END = 4; over the rows with FIRST = 4.
template <int FIRST, int END> __device__ inline float lanes_sum(float value) {
#pragma unroll
    for (int other = FIRST; other < END; other *= 2) value += __shfl_xor_sync(~0u, value, other);
    return value;
}
