// On the host, threads read pieces into place, or through a small buffer when the type changes. For other devices,
// threads fill one staging buffer while the other is copied to the device.
#include "lancet/models/tensor_reader.h"

#include <ATen/Parallel.h>
#include <sys/mman.h>
#include <torch/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>

#include "lancet/runtime/placement.h"

namespace lancet {
namespace {

using Bytes = std::span<std::byte>;

/// What one thread reads at a time; also the conversion's buffer: half of a core's level-2 cache, or less. A multiple
/// of every element's size.
constexpr int64_t kPieceBytes = int64_t{256} << 10;
/// What goes to a device at a time: long enough that starting a copy and a thread costs nothing beside it.
constexpr int64_t kStagingBytes = int64_t{32} << 20;

int64_t size_of(Bytes bytes) { return static_cast<int64_t>(bytes.size()); }

Bytes bytes_of(const Tensor& tensor) { return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()}; }

int64_t piece_count(int64_t n_bytes) { return (n_bytes + kPieceBytes - 1) / kPieceBytes; }

/// By all threads.
void read_into(const TensorView& stored, int64_t offset, Bytes to) {
  at::parallel_for(0, piece_count(size_of(to)), 1, [&](int64_t first, int64_t last) {
    for (int64_t begin = first * kPieceBytes; begin < std::min(size_of(to), last * kPieceBytes); begin += kPieceBytes) {
      const Bytes rest = to.subspan(static_cast<size_t>(begin));
      stored.read(static_cast<uint64_t>(offset + begin),
                  rest.first(std::min(rest.size(), static_cast<size_t>(kPieceBytes))));
    }
  });
}

/// By all threads; `flat`: [numel] on the host.
void read_converted(const TensorView& stored, const Tensor& flat) {
  const int64_t piece_elements = kPieceBytes / bytes_per_element(stored.dtype);
  const auto stored_options = torch::TensorOptions(to_scalar_type(stored.dtype));
  at::parallel_for(0, piece_count(static_cast<int64_t>(stored.bytes.size())), 1, [&](int64_t first, int64_t last) {
    const torch::NoGradGuard no_grad;  // each thread has its own
    const Tensor buffer = torch::empty({piece_elements}, stored_options);
    for (int64_t piece = first; piece < last; ++piece) {
      const Tensor place = flat.slice(0, piece * piece_elements, (piece + 1) * piece_elements);
      const Tensor read = buffer.slice(0, 0, place.numel());
      stored.read(static_cast<uint64_t>(piece * kPieceBytes), bytes_of(read));
      place.copy_(read);
    }
  });
}

/// Where the system has large pages for those who ask: the first touch of new memory, page by page, costs several times
/// what reading a file from the page cache does. A wish: nothing depends on it.
void prefer_large_pages(const Tensor& memory) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(memory.mutable_data_ptr());
  const uintptr_t begin = (address + page - 1) / page * page;
  const uintptr_t end = (address + memory.nbytes()) / page * page;
  if (begin < end) static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
}

Tensor read_on_host(const TensorRead& read) {
  const TensorView& stored = read.stored;
  Tensor tensor = torch::empty(stored.shape, torch::TensorOptions(read.dtype).device(read.device));
  prefer_large_pages(tensor);
  if (read.dtype == to_scalar_type(stored.dtype))
    read_into(stored, 0, bytes_of(tensor));
  else
    read_converted(stored, tensor.view({-1}));
  return tensor;
}

/// Two buffers that take turns: one is read into while the other is copied to its device.
class Stager {
 public:
  /// The tensor is whole after finish().
  Tensor read(const TensorRead& read) {
    const Tensor tensor = torch::empty(read.stored.shape, torch::TensorOptions(read.dtype).device(read.device));
    const Tensor flat = tensor.view({-1});
    const at::ScalarType stored_type = to_scalar_type(read.stored.dtype);
    const int64_t element_bytes = bytes_per_element(read.stored.dtype);
    const auto stored_bytes = static_cast<int64_t>(read.stored.bytes.size());
    for (int64_t begin = 0; begin < stored_bytes; begin += kStagingBytes) {
      const int64_t end = std::min(stored_bytes, begin + kStagingBytes);
      Slot& slot = next_slot(read.device);
      const Tensor staged = slot.buffer.slice(0, 0, end - begin);
      read_into(read.stored, begin, bytes_of(staged));
      const Tensor place = flat.slice(0, begin / element_bytes, end / element_bytes);
      slot.upload = std::async(std::launch::async, [place, staged = staged.view(stored_type)] {
        const torch::NoGradGuard no_grad;
        // First across, then to the other type: copy_ alone would convert on the host.
        place.copy_(staged.scalar_type() == place.scalar_type() ? staged : staged.to(place.device()));
      });
    }
    return tensor;
  }

  void finish() {
    for (Slot& slot : slots_)
      if (slot.upload.valid()) slot.upload.get();
  }

 private:
  struct Slot {
    Tensor buffer;
    std::future<void> upload;  // its destructor waits
  };

  Slot& next_slot(at::Device device) {
    Slot& slot = slots_[next_];
    next_ = (next_ + 1) % slots_.size();
    if (slot.upload.valid()) slot.upload.get();
    if (!slot.buffer.defined()) slot.buffer = Placement::staging_buffer(kStagingBytes, device);
    return slot;
  }

  std::array<Slot, 2> slots_;
  size_t next_ = 0;
};

}  // namespace

std::vector<Tensor> read_tensors(std::span<const TensorRead> reads, const std::function<void(int64_t)>& on_bytes) {
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> tensors;
  Stager stager;
  int64_t read_bytes = 0;
  for (const TensorRead& read : reads) {
    tensors.push_back(read.device == Placement::host() ? read_on_host(read) : stager.read(read));
    read_bytes += static_cast<int64_t>(read.stored.bytes.size());
    on_bytes(read_bytes);
  }
  stager.finish();
  return tensors;
}

}  // namespace lancet
