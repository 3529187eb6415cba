#include "emulated_kernels.h"

#include <ucontext.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "lancet/runtime/devices.h"

namespace {

struct Index3 {
  unsigned x;
};
// What a kernel sees; set whenever a thread takes its turn.
Index3 threadIdx, blockIdx, blockDim, gridDim;

constexpr int kWarpThreads = 32;

/// The threads of one block, as contexts that hand on the processor.
class EmulatedBlock {
 public:
  EmulatedBlock(int64_t threads, lancet::testing::ThreadOrder order)
      : threads_(static_cast<size_t>(threads)), slots_(static_cast<size_t>(threads)) {
    for (size_t i = 0; i < threads_.size(); ++i)
      order_.push_back(order == lancet::testing::ThreadOrder::kAscending ? i : threads_.size() - 1 - i);
    // kept, since a thousand new ones take longer than what runs on them
    static std::vector<std::unique_ptr<char[]>> stacks;
    while (stacks.size() < threads_.size()) stacks.emplace_back(new char[kStackBytes]);
    for (size_t i = 0; i < threads_.size(); ++i) threads_[i].stack = stacks[i].get();
  }

  void run(const std::function<void()>& body) {
    body_ = &body;
    for (Thread& thread : threads_) begin(thread);
    while (run_all()) release();
  }

  /// Hands on the processor until the threads of the warp, or of the block, are here.
  void wait_for_warp() { wait(State::kAtWarp); }
  void wait_for_block() { wait(State::kAtBlock); }

  /// What the thread whose number differs by these bits gives; both threads get the other's.
  template <typename V>
  V exchange(V value, int other) {
    std::memcpy(&slots_[now_], &value, sizeof(V));
    wait_for_warp();
    std::memcpy(&value, &slots_.at(now_ ^ static_cast<size_t>(other)), sizeof(V));
    wait_for_warp();
    return value;
  }

 private:
  enum class State { kRuns, kAtWarp, kAtBlock, kDone };
  struct Thread {
    ucontext_t context{};
    char* stack = nullptr;
    State state = State::kRuns;
  };
  static constexpr size_t kStackBytes = size_t{32} << 10;

  static void enter();

  void begin(Thread& thread) {
    thread.state = State::kRuns;
    ::getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack;
    thread.context.uc_stack.ss_size = kStackBytes;
    thread.context.uc_link = &scheduler_;
    ::makecontext(&thread.context, enter, 0);
  }

  void wait(State state) {
    Thread& thread = threads_[now_];
    thread.state = state;
    ::swapcontext(&thread.context, &scheduler_);
  }

  /// Each thread that can, up to where it waits or ends. False: all have ended.
  bool run_all() {
    bool has_waiting = false;
    for (const size_t i : order_) {
      if (threads_[i].state == State::kRuns) {
        now_ = i;
        threadIdx.x = static_cast<unsigned>(i);
        ::swapcontext(&scheduler_, &threads_[i].context);
      }
      has_waiting = has_waiting || threads_[i].state != State::kDone;
    }
    return has_waiting;
  }

  bool all_at(size_t begin, size_t end, State state) const {
    for (size_t i = begin; i < end; ++i)
      if (threads_[i].state != state) return false;
    return true;
  }

  void let_go(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) threads_[i].state = State::kRuns;
  }

  void release() {
    bool released = false;
    for (size_t warp = 0; warp < threads_.size(); warp += kWarpThreads)
      if (all_at(warp, warp + kWarpThreads, State::kAtWarp)) {
        let_go(warp, warp + kWarpThreads);
        released = true;
      }
    if (all_at(0, threads_.size(), State::kAtBlock)) {
      let_go(0, threads_.size());
      released = true;
    }
    if (!released) throw std::logic_error("threads of a block wait for others that are elsewhere or have ended");
  }

  std::vector<Thread> threads_;
  std::vector<size_t> order_;
  std::vector<uint64_t> slots_;
  ucontext_t scheduler_{};
  const std::function<void()>* body_ = nullptr;
  size_t now_ = 0;
};

EmulatedBlock* block = nullptr;

void EmulatedBlock::enter() {
  (*block->body_)();
  block->threads_[block->now_].state = State::kDone;
}

void __syncthreads() { block->wait_for_block(); }

template <typename V>
V __shfl_xor_sync(unsigned, V value, int other) {
  return block->exchange(value, other);
}

}  // namespace

#define __device__
#define __global__
#define __launch_bounds__(...)
#define __shared__ static
#include <decoder_kernels.cu>
LANCET_KERNELS(bf16, lancet::Bf16)
LANCET_KERNELS(f16, lancet::F16)
LANCET_KERNELS(f32, float)
LANCET_KERNELS(f64, double)

namespace lancet::testing {
namespace {

using BoundKernel = std::function<void(std::span<void* const>)>;

template <typename A>
A argument(void* at) {
  A value;
  std::memcpy(&value, at, sizeof(A));
  return value;
}

template <typename... A>
BoundKernel bound(void (*kernel)(A...)) {
  return [kernel](std::span<void* const> arguments) {
    if (arguments.size() != sizeof...(A)) throw std::logic_error("a kernel is launched with too few or many arguments");
    [&]<size_t... kI>(std::index_sequence<kI...>) { kernel(argument<A>(arguments[kI])...); }
    (std::index_sequence_for<A...>());
  };
}

#define LANCET_BOUND(NAME, TYPE) \
  { "lancet_" #NAME "_" #TYPE, bound(lancet_##NAME##_##TYPE) }
#define LANCET_BOUND_OF(TYPE)                                                                         \
  LANCET_BOUND(norm, TYPE), LANCET_BOUND(norm_gradient, TYPE), LANCET_BOUND(gate, TYPE),              \
      LANCET_BOUND(gate_gradient, TYPE), LANCET_BOUND(rotate, TYPE), LANCET_BOUND(split_heads, TYPE), \
      LANCET_BOUND(join_heads, TYPE), LANCET_BOUND(loss, TYPE), LANCET_BOUND(loss_gradient, TYPE),    \
      LANCET_BOUND(ragged_attention, TYPE), LANCET_BOUND(ragged_query_gradient, TYPE),                \
      LANCET_BOUND(ragged_key_gradient, TYPE)

const BoundKernel& kernel_named(const std::string& name) {
  static const std::map<std::string, BoundKernel> kernels{LANCET_BOUND_OF(bf16), LANCET_BOUND_OF(f16),
                                                          LANCET_BOUND_OF(f32), LANCET_BOUND_OF(f64)};
  const auto found = kernels.find(name);
  if (found == kernels.end()) throw std::logic_error("there is no kernel " + name);
  return found->second;
}

}  // namespace

bool EmulatedKernels::serves(at::Device device, at::ScalarType type) {
  return (device == Placement::host() || device.is_privateuseone()) &&
         (type == at::kBFloat16 || type == at::kHalf || type == at::kFloat || type == at::kDouble);
}

void EmulatedKernels::launch(at::Device, const KernelLaunch& launch) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const BoundKernel& kernel = kernel_named(kernel_function(launch.name, launch.type));
  if (launch.threads < 1 || launch.threads > 1024 || launch.threads % kWarpThreads != 0 || launch.blocks < 1)
    throw std::logic_error("no GPU takes this grid");
  ++launches_;
  EmulatedBlock threads(launch.threads, order_);
  block = &threads;
  blockDim.x = static_cast<unsigned>(launch.threads);
  gridDim.x = static_cast<unsigned>(launch.blocks);
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) threads.run([&] { kernel(launch.arguments); });
}

uint16_t kernels_narrow_f16(float x) { return narrowed_f16(x); }
float kernels_widen_f16(uint16_t bits) { return widened_f16(bits); }
uint16_t kernels_narrow_bf16(float x) { return narrowed_bf16(x); }
float kernels_widen_bf16(uint16_t bits) { return widened_bf16(bits); }

}  // namespace lancet::testing
