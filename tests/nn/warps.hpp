// What of CUDA the kernels of magnetite.nn use, on a processor: lanes are threads, warps and blocks are barriers.
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(threads)
#define __expf expf

struct float4 {
    float x, y, z, w;
};
struct Index {
    int x;
};
thread_local Index threadIdx;
static Index blockIdx, gridDim;

static float to_float(float number) { return number; }
static float to_float(unsigned short bits) {
    _Float16 number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}
static float reciprocal(float number) { return 1.0f / number; }
static float power_of_two(float number) { return exp2f(number); }

constexpr int LANES = 32, MOST_WARPS = 8;
static std::unique_ptr<std::barrier<>> block_barrier, warp_barriers[MOST_WARPS];
static std::atomic<unsigned> ballots[MOST_WARPS];

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

template <class Kernel, class... Arguments> void launch(int blocks, int warps, Kernel kernel, Arguments... arguments) {
    gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        block_barrier = std::make_unique<std::barrier<>>(LANES * warps);
        for (auto &barrier : warp_barriers) barrier = std::make_unique<std::barrier<>>(LANES);
        std::vector<std::thread> threads;
        for (int thread = 0; thread < LANES * warps; thread++)
            threads.emplace_back([=] {
                threadIdx.x = thread;
                kernel(arguments...);
            });
        for (auto &thread : threads) thread.join();
    }
}

struct Pointer {
    void *address;
    template <class Target> operator Target *() const { return static_cast<Target *>(address); }
};

// A kernel of pointers and, at the end, two numbers.
template <class... Parameters>
void run(int blocks, int warps, void (*kernel)(Parameters...), void **tensors, int all, int nodes) {
    [=]<std::size_t... Places>(std::index_sequence<Places...>) {
        launch(blocks, warps, kernel, Pointer{tensors[Places]}..., all, nodes);
    }(std::make_index_sequence<sizeof...(Parameters) - 2>{});
}
