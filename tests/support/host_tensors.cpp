#include "host_tensors.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace lancet::testing {
namespace {

/// Torch's allocator, which counts while it is in its place. Tensors made before it are not known to it.
class CountingAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr memory = inner_->allocate(bytes);
    void* const begin = memory.get();
    const c10::Device device = memory.device();
    const std::scoped_lock lock(mutex_);
    live_ += static_cast<int64_t>(bytes);
    peak_ = std::max(peak_, live_);
    pieces_[begin] = Piece{std::move(memory), static_cast<int64_t>(bytes)};
    return {begin, begin, &release, device};  // where torch asks for bytes alone, it wants the two to be one
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t count) const override { inner_->copy_data(to, from, count); }

  int64_t peak_of(const std::function<void()>& work) {
    c10::SetCPUAllocator(this, kPriority);
    const int64_t before = begin_count();
    try {
      work();
    } catch (...) {
      c10::SetCPUAllocator(inner_, kPriority);
      throw;
    }
    c10::SetCPUAllocator(inner_, kPriority);
    const std::scoped_lock lock(mutex_);
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

  int64_t begin_count() {
    const std::scoped_lock lock(mutex_);
    return peak_ = live_;
  }

  static void release(void* begin) {
    CountingAllocator& all = only();
    const std::scoped_lock lock(all.mutex_);
    if (const auto piece = all.pieces_.extract(begin); !piece.empty()) all.live_ -= piece.mapped().bytes;
  }

  c10::Allocator* const inner_ = c10::GetCPUAllocator();
  std::mutex mutex_;
  std::map<void*, Piece> pieces_;  ///< what is not released yet, by its begin
  int64_t live_ = 0, peak_ = 0;
};

}  // namespace

int64_t host_tensors_peak(const std::function<void()>& work) { return CountingAllocator::only().peak_of(work); }

}  // namespace lancet::testing
