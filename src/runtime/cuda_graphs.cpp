// Streams and events are torch's for any device, because those for CUDA need CUDA's runtime in addition to torch. A
// batch's tensors and the pool of its graphs belong to a stream that no other thread uses. This stream and the thread's
// usual stream wait for each other at the beginning and at the end, so that each may use what the other made before.
#include "cuda_graphs.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/memory.h"

namespace lancet {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

/// Runs a clean-up that must not throw: the error that led to it must be reported.
void try_to(const std::function<void()>& clean_up) {
  try {
    clean_up();
  } catch (const std::exception&) {  // nothing else can be done; at most memory is lost
  }
}

/// Streams other than torch's usual one. Torch gives the same few streams again and again; here each has one user at a
/// time.
class SideStreams {
 public:
  c10::Stream take(at::Device device) {
    const std::lock_guard lock(mutex_);
    std::vector<c10::Stream>& free = free_[device.index()];
    if (free.empty()) return c10::impl::getDeviceGuardImpl(device.type())->getStreamFromGlobalPool(device);
    const c10::Stream stream = free.back();
    free.pop_back();
    return stream;
  }

  void give_back(c10::Stream stream) {
    const std::lock_guard lock(mutex_);
    free_[stream.device_index()].push_back(stream);
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, std::vector<c10::Stream>> free_;
};

/// Exists until the process ends.
SideStreams& side_streams() {
  static SideStreams* const streams = new SideStreams;
  return *streams;
}

/// The memory that graphs of the same lifetime share. No other work uses it. When the last of the graphs is gone, it is
/// returned to the device.
class GraphPool {
 public:
  explicit GraphPool(at::Device device) : device_(device), id_(at::cuda::graph_pool_handle()) {}
  ~GraphPool() {
    try_to([&] { allocator::emptyCache(id_); });
  }
  GraphPool(const GraphPool&) = delete;
  GraphPool& operator=(const GraphPool&) = delete;

  at::MempoolId_t id() const { return id_; }

  /// Cleans up after a capture without an end: otherwise torch's graph leaves both allocators capturing, and the pool
  /// in use.
  void abandon() const {
    const auto index = device_.index();
    at::HostAllocator& host = *at::getHostAllocator(device_.type());
    try_to([&] { allocator::endAllocateToPool(index, id_); });
    try_to([&] { host.end_allocate_to_pool(id_); });
    try_to([&] { allocator::releasePool(index, id_); });
    try_to([&] { host.release_pool(id_); });
  }

 private:
  at::Device device_;
  at::MempoolId_t id_;
};

/// Torch's graph, which also tells how far its capture came.
class TorchGraph : public at::cuda::CUDAGraph {
 public:
  TorchGraph() = default;
  /// Handles a generator that torch could not register because memory was exhausted: its destructor would end the
  /// process.
  ~TorchGraph() {
    const bool is_known = std::ranges::all_of(
        captured_generator_states_, [&](const auto& state) { return state.first->registered_graphs_.contains(this); });
    if (!is_known) captured_generator_states_.clear();
  }
  TorchGraph(const TorchGraph&) = delete;
  TorchGraph& operator=(const TorchGraph&) = delete;

  bool has_begun() const { return capture_dev_ != UNDEFINED_DEVICE; }  ///< and so has its use of the pool
  bool has_ended() const { return capture_ended_; }
};

/// A capture from begin() to end(), or to the end of the scope.
class OpenCapture {
 public:
  OpenCapture(TorchGraph& graph, const GraphPool& pool) : graph_(graph), pool_(pool) {}
  ~OpenCapture() {
    if (!is_open_ || !graph_.has_begun()) return;
    try_to([&] { graph_.capture_end(); });
    if (!graph_.has_ended()) pool_.abandon();
  }
  OpenCapture(const OpenCapture&) = delete;
  OpenCapture& operator=(const OpenCapture&) = delete;

  /// Other threads may do what a capture forbids, because those that watch memory and ranks ask devices.
  void begin() {
    is_open_ = true;
    graph_.capture_begin(pool_.id(), cudaStreamCaptureModeThreadLocal);
  }
  void end() {
    graph_.capture_end();
    is_open_ = false;
  }

 private:
  TorchGraph& graph_;
  const GraphPool& pool_;
  bool is_open_ = false;
};

class CudaStepGraph : public StepGraph {
 public:
  CudaStepGraph(std::shared_ptr<const GraphPool> pool, const StepFunction& function) : pool_(std::move(pool)) {
    static std::mutex one_at_a_time;  // torch's allocator and the threads of autograd are shared by the whole process
    const std::lock_guard lock(one_at_a_time);
    OpenCapture capture(graph_, *pool_);
    capture.begin();
    outputs_ = function();
    capture.end();
  }

  void replay() override { graph_.replay(); }
  const std::vector<Tensor>& outputs() const override { return outputs_; }

 private:
  std::shared_ptr<const GraphPool> pool_;  // destroyed last
  std::vector<Tensor> outputs_;
  TorchGraph graph_;
};

class CudaStepGraphs : public StepGraphs {
 public:
  explicit CudaStepGraphs(at::Device device)
      : device_(device),
        before_(c10::impl::getDeviceGuardImpl(device.type())->getStream(device)),
        own_(side_streams().take(device)),
        guard_(own_) {
    wait(own_, before_);
  }
  ~CudaStepGraphs() override {
    try_to([&] { wait(before_, own_); });
    side_streams().give_back(own_);
  }
  CudaStepGraphs(const CudaStepGraphs&) = delete;
  CudaStepGraphs& operator=(const CudaStepGraphs&) = delete;

  std::unique_ptr<StepGraph> capture(const StepFunction& function) override {
    try {
      return try_capture(function);
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
    }
    allocator::emptyCache();  // during a capture the allocator does not free the memory that it keeps
    return try_capture(function);
  }

  void hand_over(const Tensor& tensor) override { tensor.record_stream(before_); }

 private:
  static void wait(c10::Stream waiting, c10::Stream other) {
    c10::Event done(other.device_type());
    done.record(other);
    done.block(waiting);
  }

  std::unique_ptr<StepGraph> try_capture(const StepFunction& function) {
    std::shared_ptr<const GraphPool> pool = pool_.lock();
    if (pool == nullptr) pool_ = pool = std::make_shared<const GraphPool>(device_);
    try {
      return std::make_unique<CudaStepGraph>(std::move(pool), function);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      if (is_out_of_memory(error)) throw;
      const auto* torch = dynamic_cast<const c10::Error*>(&error);
      throw PlacementError(cat(device_.str(), ": a step could not be captured as a CUDA graph: ",
                               torch != nullptr ? torch->what_without_backtrace() : error.what(),
                               ". Set run.cuda_graphs: false"));
    }
  }

  at::Device device_;
  c10::Stream before_;
  c10::Stream own_;
  c10::StreamGuard guard_;
  std::weak_ptr<const GraphPool> pool_;
};

class CudaGraphMaker : public GraphMaker {
 public:
  bool serves(at::Device device) const override { return device.is_cuda(); }
  std::unique_ptr<StepGraphs> begin(at::Device device) override { return std::make_unique<CudaStepGraphs>(device); }
};

}  // namespace

GraphMaker& cuda_graph_maker() {
  static CudaGraphMaker maker;
  return maker;
}

}  // namespace lancet
