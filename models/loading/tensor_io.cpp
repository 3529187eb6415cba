#include "lancet/models/tensor_io.h"

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <sys/mman.h>
#include <torch/types.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <future>
#include <stdexcept>

#include "lancet/core/error.h"
#include "lancet/core/parallel.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/convert.h"
#include "lancet/runtime/devices.h"

namespace lancet {

// Reads stored bytes into tensors. On the host, threads read pieces directly into the tensor, or through a small buffer
// if the type changes. For other devices, threads fill one staging buffer while the other one is copied to the device.

namespace {

using Bytes = std::span<std::byte>;

/// How much a thread reads and converts at a time: at most half of a core's level-2 cache. It has at least GRAIN_SIZE
/// numbers of every type.
constexpr int64_t kSliceBytes = int64_t{256} << 10;
/// The border between the pieces of two threads in new memory: that of a large page, which is created when one thread
/// touches it, while the other would have to wait.
constexpr uintptr_t kPieceBorder = uintptr_t{2} << 20;
/// The bytes of tensors that threads read together.
constexpr int64_t kTogetherBytes = int64_t{256} << 20;
/// How much is copied to a device at a time: so much that the start of a copy and of a thread costs nothing in
/// comparison.
constexpr int64_t kStagingBytes = int64_t{32} << 20;

Bytes bytes_of(const Tensor& tensor) { return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()}; }

/// A part of a tensor's memory; offsets in bytes.
struct Piece {
  const TensorView* stored;
  const Tensor* tensor;
  int64_t begin;
  int64_t end;
};

void add_pieces(const TensorView& stored, const Tensor& tensor, std::vector<Piece>& pieces) {
  const auto address = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
  const auto n_bytes = static_cast<int64_t>(tensor.nbytes());
  for (int64_t begin = 0; begin < n_bytes;) {
    const uintptr_t at = address + static_cast<uintptr_t>(begin);
    const int64_t end = std::min(n_bytes, begin + static_cast<int64_t>(kPieceBorder - at % kPieceBorder));
    pieces.push_back({&stored, &tensor, begin, end});
    begin = end;
  }
}

/// Reads in slices and converts them in this thread, because such a thread already runs on every core.
void read_converted(const Piece& piece) {
  const torch::NoGradGuard no_grad;  // each thread has its own guard
  thread_local std::vector<std::byte> buffer(kSliceBytes);
  const int64_t stored_bytes = bytes_per_element(piece.stored->dtype);
  const auto bytes = static_cast<int64_t>(piece.tensor->element_size());
  const Tensor flat = piece.tensor->view({-1});
  // torch's own conversion is slower than reading, and starts its own threads for longer slices
  const bool widens = piece.stored->dtype == DType::kBF16 && flat.scalar_type() == at::kFloat;
  const int64_t most = widens ? kSliceBytes / stored_bytes : at::internal::GRAIN_SIZE;
  for (int64_t i = piece.begin / bytes; i < piece.end / bytes; i += most) {
    const int64_t n = std::min(most, piece.end / bytes - i);
    const Bytes slice = Bytes(buffer).first(static_cast<size_t>(n * stored_bytes));
    piece.stored->read(static_cast<uint64_t>(i * stored_bytes), slice);
    if (widens)
      widen({reinterpret_cast<const uint16_t*>(slice.data()), static_cast<size_t>(n)},
            {flat.mutable_data_ptr<float>() + i, static_cast<size_t>(n)});
    else
      flat.narrow(0, i, n).copy_(
          torch::from_blob(slice.data(), {n}, torch::TensorOptions(to_scalar_type(piece.stored->dtype))));
  }
}

void read_piece(const Piece& piece) {
  if (piece.tensor->scalar_type() != to_scalar_type(piece.stored->dtype)) return read_converted(piece);
  piece.stored->read(
      static_cast<uint64_t>(piece.begin),
      bytes_of(*piece.tensor).subspan(static_cast<size_t>(piece.begin), static_cast<size_t>(piece.end - piece.begin)));
}

/// Reads with as many threads as torch uses.
void read_pieces(const std::vector<Piece>& pieces) {
  for_each_in_parallel(pieces.size(), static_cast<size_t>(at::get_num_threads()),
                       [&](size_t i) { read_piece(pieces[i]); });
}

/// Calls `work(at, slice)` for each slice of `memory`, which begins at byte `at`, in as many threads as torch uses.
template <typename Work>
void in_slices(Bytes memory, const Work& work) {
  const auto size = static_cast<size_t>(kSliceBytes);
  for_each_in_parallel((memory.size() + size - 1) / size, static_cast<size_t>(at::get_num_threads()), [&](size_t i) {
    const size_t at = i * size;
    work(at, memory.subspan(at, std::min(size, memory.size() - at)));
  });
}

/// Fills `staged`, memory of bytes, with those of `stored` from `begin` on.
void fill(const Tensor& staged, const TensorView& stored, int64_t begin) {
  in_slices(bytes_of(staged), [&](size_t at, Bytes slice) { stored.read(static_cast<uint64_t>(begin) + at, slice); });
}

/// Asks the system for large pages: the first touch of new memory, page by page, takes several times longer than
/// reading a file from the page cache. Nothing depends on whether the system grants them.
void prefer_large_pages(const Tensor& memory) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(memory.mutable_data_ptr());
  const uintptr_t begin = (address + page - 1) / page * page;
  const uintptr_t end = (address + memory.nbytes()) / page * page;
  if (begin < end) static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
}

Tensor place_of(const TensorRead& read) {
  if (read.place.defined()) return read.place;
  return torch::empty(read.stored.shape, torch::TensorOptions(read.dtype).device(read.device));
}

/// Reads the first of `reads`, all of them on the host: as many as are read together.
std::vector<Tensor> read_some_on_host(std::span<const TensorRead> reads) {
  std::vector<Tensor> tensors;
  size_t n_bytes = 0;
  for (const TensorRead& read : reads) {
    if (read.device != Placement::host() || n_bytes >= static_cast<size_t>(kTogetherBytes)) break;
    n_bytes += read.stored.bytes.size();
    tensors.push_back(place_of(read));
    prefer_large_pages(tensors.back());
  }
  std::vector<Piece> pieces;
  for (size_t i = 0; i < tensors.size(); ++i) add_pieces(reads[i].stored, tensors[i], pieces);
  read_pieces(pieces);
  return tensors;
}

/// Two buffers that take turns: one is filled while the other is copied to its device.
class Stager {
 public:
  /// The tensor is complete after finish().
  Tensor read(const TensorRead& read) {
    const Tensor tensor = place_of(read);
    stage(tensor.view({-1}), to_scalar_type(read.stored.dtype),
          [&](const Tensor& staged, int64_t begin) { fill(staged, read.stored, begin); });
    return tensor;
  }

  /// Copies a tensor in the same way. It is complete after finish().
  Tensor copy(const Tensor& from, at::Device device) {
    const Tensor dense = from.is_non_overlapping_and_dense() ? from : from.contiguous();
    const Tensor tensor = torch::empty_strided(dense.sizes(), dense.strides(), dense.options().device(device));
    const auto flat = [](const Tensor& x) { return x.as_strided({x.numel()}, {1}); };
    const auto* bytes = static_cast<const std::byte*>(dense.const_data_ptr());
    stage(flat(tensor), dense.scalar_type(), [&](const Tensor& staged, int64_t begin) {
      const Bytes to = bytes_of(staged);
      in_slices(to, [&](size_t at, Bytes slice) {
        std::memcpy(slice.data(), bytes + begin + static_cast<int64_t>(at), slice.size());
      });
    });
    return tensor;
  }

  void finish() {
    for (Slot& slot : slots_)
      if (slot.upload.valid()) slot.upload.get();
  }

 private:
  /// `fill(staged, begin)` puts the bytes from `begin` on into a buffer, which is then copied to `flat` in the
  /// background.
  template <typename Fill>
  void stage(const Tensor& flat, at::ScalarType stored_type, const Fill& fill) {
    const auto element_bytes = static_cast<int64_t>(c10::elementSize(stored_type));
    const int64_t stored_bytes = flat.numel() * element_bytes;
    for (int64_t begin = 0; begin < stored_bytes; begin += kStagingBytes) {
      const int64_t end = std::min(stored_bytes, begin + kStagingBytes);
      Slot& slot = next_slot(flat.device());
      const Tensor staged = slot.buffer.slice(0, 0, end - begin);
      fill(staged, begin);
      const Tensor place = flat.slice(0, begin / element_bytes, end / element_bytes);
      slot.upload = std::async(std::launch::async, [place, staged = staged.view(stored_type)] {
        const torch::NoGradGuard no_grad;
        // first to the device, then to the other type: copy_ alone would convert on the host
        place.copy_(staged.scalar_type() == place.scalar_type() ? staged : staged.to(place.device()));
      });
    }
  }

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
  while (tensors.size() < reads.size()) {
    const std::span<const TensorRead> left = reads.subspan(tensors.size());
    std::vector<Tensor> some = read_some_on_host(left);
    if (some.empty()) some.push_back(stager.read(left.front()));
    for (Tensor& tensor : some) {
      read_bytes += static_cast<int64_t>(reads[tensors.size()].stored.bytes.size());
      tensors.push_back(std::move(tensor));
      on_bytes(read_bytes);
    }
  }
  stager.finish();
  return tensors;
}

Tensor upload(const Tensor& tensor, at::Device device) {
  if (tensor.device() != Placement::host() || device == Placement::host()) return tensor.to(device);
  const torch::NoGradGuard no_grad;
  Stager stager;
  Tensor there = stager.copy(tensor, device);
  stager.finish();
  return there;
}

Tensor to_tensor(const TensorView& view) {
  const auto options = torch::TensorOptions(to_scalar_type(view.dtype));
  const auto address = reinterpret_cast<uintptr_t>(view.bytes.data());
  if (address % static_cast<uintptr_t>(bytes_per_element(view.dtype)) == 0) {
    // torch needs a mutable pointer, but the mapping is read-only and the tensor is only read
    void* bytes = const_cast<std::byte*>(view.bytes.data());
    return torch::from_blob(
        bytes, view.shape, [owner = view.owner](void*) {}, options);
  }
  Tensor copy = torch::empty(view.shape, options);
  std::copy(view.bytes.begin(), view.bytes.end(), static_cast<std::byte*>(copy.mutable_data_ptr()));
  return copy;
}

NamedTensors load_tensors(const SealedFile& file) {
  NamedTensors tensors;
  for (const TensorInfo& info : file.tensors())
    tensors.emplace_back(info.name, torch::empty(info.shape, torch::TensorOptions(to_scalar_type(info.dtype))));
  file.read([&](const SealedFile::Piece& piece) {
    auto* to = static_cast<std::byte*>(tensors[piece.tensor].second.mutable_data_ptr()) + piece.offset;
    std::ranges::copy(piece.bytes, to);
  });
  return tensors;
}

namespace {

/// Calls `use` with the tensors' bytes.
template <typename Use>
std::string with_sources(const NamedTensors& tensors, const Use& use) {
  std::vector<Tensor> host;
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors) {
    host.push_back(tensor.to(Placement::host()).contiguous());
    sources.push_back(to_source(name, host.back()));
  }
  return use(sources);
}

}  // namespace

std::string write_tensors(const std::filesystem::path& path, const SealedFormat& format, const NamedTensors& tensors,
                          const Metadata& facts) {
  return with_sources(tensors, [&](const auto& sources) { return write_sealed(path, format, sources, facts); });
}

std::string hash_of_tensors(const SealedFormat& format, const NamedTensors& tensors, const Metadata& facts) {
  return with_sources(tensors, [&](const auto& sources) { return sealed_hash(format, sources, facts); });
}

TensorSource to_source(std::string name, const Tensor& tensor) {
  if (tensor.device() != Placement::host() || !tensor.is_contiguous())
    throw std::logic_error(name + ": only a contiguous tensor on the host can be written");
  return {std::move(name),
          to_dtype(tensor.scalar_type()),
          tensor.sizes().vec(),
          {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

}  // namespace lancet
