#include "host_tensors.h"

#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <memory>

namespace lancet::testing {
namespace {

/// Torch's allocator, which counts while it is in its place. Tensors made before it are not known to it.
class CountingAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr memory = inner_->allocate(bytes);
    void* const begin = memory.get();
    const c10::Device device = memory.device();
    auto piece = std::make_unique<Piece>(Piece{std::move(memory), static_cast<int64_t>(bytes)});
    const int64_t live = live_ += piece->bytes;
    int64_t most = peak_;
    while (live > most && !peak_.compare_exchange_weak(most, live)) continue;
    return {begin, piece.release(), &release, device};
  }
  void copy_data(void* to, const void* from, std::size_t count) const override { inner_->copy_data(to, from, count); }

  int64_t peak_of(const std::function<void()>& work) {
    c10::SetCPUAllocator(this, kPriority);
    const int64_t before = live_;
    peak_ = before;
    try {
      work();
    } catch (...) {
      c10::SetCPUAllocator(inner_, kPriority);
      throw;
    }
    c10::SetCPUAllocator(inner_, kPriority);
    return peak_ - before;
  }

  static CountingAllocator& only() {
    static auto* const kOnly = new CountingAllocator;  // tensors may outlive everything
    return *kOnly;
  }

 private:
  struct Piece {
    c10::DataPtr memory;
    int64_t bytes;
  };
  static constexpr uint8_t kPriority = 255;

  static void release(void* piece) {
    const std::unique_ptr<Piece> owned(static_cast<Piece*>(piece));
    only().live_ -= owned->bytes;
  }

  c10::Allocator* const inner_ = c10::GetCPUAllocator();
  std::atomic<int64_t> live_ = 0, peak_ = 0;
};

}  // namespace

int64_t host_tensors_peak(const std::function<void()>& work) { return CountingAllocator::only().peak_of(work); }

}  // namespace lancet::testing
