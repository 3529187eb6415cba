// On the host, threads read pieces into place, or through a small buffer when the type changes. For other devices,
// threads fill one staging buffer while the other is copied to the device.
#include "lancet/models/tensor_reader.h"

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <sys/mman.h>
#include <torch/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <future>

#include "lancet/core/parallel.h"
#include "lancet/runtime/placement.h"

namespace lancet {
namespace {

using Bytes = std::span<std::byte>;

/// What one thread reads at a time; also the conversion's buffer: half of a core's level-2 cache, or less. A multiple
/// of every element's size.
constexpr int64_t kPieceBytes = int64_t{256} << 10;
/// What goes to a device at a time: long enough that starting a copy and a thread costs nothing beside it.
constexpr int64_t kStagingBytes = int64_t{32} << 20;

Bytes bytes_of(const Tensor& tensor) { return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()}; }

/// `work`(begin, end) on the pieces of [0, n_bytes), by as many threads as torch uses.
void for_each_piece(int64_t n_bytes, const std::function<void(int64_t, int64_t)>& work) {
  const auto n_pieces = static_cast<size_t>((n_bytes + kPieceBytes - 1) / kPieceBytes);
  for_each_in_parallel(n_pieces, static_cast<size_t>(at::get_num_threads()), [&](size_t piece) {
    const int64_t begin = static_cast<int64_t>(piece) * kPieceBytes;
    work(begin, std::min(n_bytes, begin + kPieceBytes));
  });
}

void read_into(const TensorView& stored, int64_t offset, Bytes to) {
  for_each_piece(static_cast<int64_t>(to.size()), [&](int64_t begin, int64_t end) {
    stored.read(static_cast<uint64_t>(offset + begin),
                to.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  });
}

/// `flat`: [numel] on the host.
void read_converted(const TensorView& stored, const Tensor& flat) {
  const int64_t element_bytes = bytes_per_element(stored.dtype);
  const auto stored_options = torch::TensorOptions(to_scalar_type(stored.dtype));
  for_each_piece(static_cast<int64_t>(stored.bytes.size()), [&](int64_t begin, int64_t end) {
    const torch::NoGradGuard no_grad;  // each thread has its own
    thread_local std::vector<std::byte> buffer(kPieceBytes);
    const Bytes bytes = Bytes(buffer).first(static_cast<size_t>(end - begin));
    stored.read(static_cast<uint64_t>(begin), bytes);
    const Tensor piece = torch::from_blob(bytes.data(), {(end - begin) / element_bytes}, stored_options);
    // In slices that torch converts in this thread: there is one of us on every core already.
    for (int64_t i = 0; i < piece.numel(); i += at::internal::GRAIN_SIZE) {
      const Tensor slice = piece.slice(0, i, i + at::internal::GRAIN_SIZE);
      flat.narrow(0, begin / element_bytes + i, slice.numel()).copy_(slice);
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
