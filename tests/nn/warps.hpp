// What of CUDA the kernel of eigen_attention.cu uses, on a processor: lanes are threads, warps and blocks are barriers.
#include <atomic>
#include <barrier>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __expf expf

struct float4 {
    float x, y, z, w;
};
struct Index {
    int x;
};
thread_local Index threadIdx;
static Index blockIdx, gridDim;

constexpr int LANES = 32, EMULATED_WARPS = 2;
static std::unique_ptr<std::barrier<>> block_barrier, warp_barriers[EMULATED_WARPS];
static std::atomic<unsigned> ballots[EMULATED_WARPS];

static void __syncthreads() { block_barrier->arrive_and_wait(); }
static void __syncwarp() { warp_barriers[threadIdx.x / LANES]->arrive_and_wait(); }
static unsigned __ballot_sync(unsigned, bool vote) {
    auto &ballot = ballots[threadIdx.x / LANES];
    __syncwarp();
    if (threadIdx.x % LANES == 0) ballot = 0;
    __syncwarp();
    if (vote) ballot.fetch_or(1u << threadIdx.x % LANES);
    __syncwarp();
    return ballot;
}

template <class Kernel, class... Arguments> void launch(int blocks, Kernel kernel, Arguments... arguments) {
    gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        block_barrier = std::make_unique<std::barrier<>>(LANES * EMULATED_WARPS);
        for (auto &barrier : warp_barriers) barrier = std::make_unique<std::barrier<>>(LANES);
        std::vector<std::thread> threads;
        for (int thread = 0; thread < LANES * EMULATED_WARPS; thread++)
            threads.emplace_back([=] {
                threadIdx.x = thread;
                kernel(arguments...);
            });
        for (auto &thread : threads) thread.join();
    }
}
