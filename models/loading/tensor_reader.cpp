#include "lancet/models/tensor_reader.h"

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

#include "lancet/core/error.h"
#include "lancet/core/parallel.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/convert.h"
#include "lancet/models/tensor_io.h"
#include "lancet/quant/tensor_slice.h"
#include "lancet/runtime/devices.h"

namespace lancet {

// Reads stored bytes into tensors. Threads read pieces into place on the host, or through a small buffer when the type
// changes. For other devices, threads fill one staging buffer while the other is copied to the device.

namespace {

using Bytes = std::span<std::byte>;

/// What a thread reads and converts at a time: half of a core's level-2 cache, or less. GRAIN_SIZE numbers of every
/// type fit in.
constexpr int64_t kSliceBytes = int64_t{256} << 10;
/// Border between one thread's piece of new memory and another's: that of a large page, which one of them makes by
/// touching it, while the other would wait.
constexpr uintptr_t kPieceBorder = uintptr_t{2} << 20;
/// Bytes of tensors that threads read together.
constexpr int64_t kTogetherBytes = int64_t{256} << 20;
/// What goes to a device at a time: long enough that starting a copy and a thread costs nothing beside it.
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

/// Reads in slices that are converted in this thread: there is one of us on every core already.
void read_converted(const Piece& piece) {
  const torch::NoGradGuard no_grad;  // each thread has its own
  thread_local std::vector<std::byte> buffer(kSliceBytes);
  const int64_t stored_bytes = bytes_per_element(piece.stored->dtype);
  const auto bytes = static_cast<int64_t>(piece.tensor->element_size());
  const Tensor flat = piece.tensor->view({-1});
  // torch's own conversion is slower than reading, and has threads of its own for longer slices
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

/// Reads by as many threads as torch uses.
void read_pieces(const std::vector<Piece>& pieces) {
  for_each_in_parallel(pieces.size(), static_cast<size_t>(at::get_num_threads()),
                       [&](size_t i) { read_piece(pieces[i]); });
}

/// `work(at, slice)` of each slice of `memory`, which begins `at` so many bytes, by as many threads as torch uses.
template <typename Work>
void in_slices(Bytes memory, const Work& work) {
  const auto size = static_cast<size_t>(kSliceBytes);
  for_each_in_parallel((memory.size() + size - 1) / size, static_cast<size_t>(at::get_num_threads()), [&](size_t i) {
    const size_t at = i * size;
    work(at, memory.subspan(at, std::min(size, memory.size() - at)));
  });
}

/// `staged`, memory of bytes, with those of `stored` from `begin` on.
void fill(const Tensor& staged, const TensorView& stored, int64_t begin) {
  in_slices(bytes_of(staged), [&](size_t at, Bytes slice) { stored.read(static_cast<uint64_t>(begin) + at, slice); });
}

/// Asks for large pages, where the system has them for those who ask: the first touch of new memory, page by page,
/// costs several times what reading a file from the page cache does. A wish: nothing depends on it.
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

/// The first of `reads`, all of them on the host: as many as are read together.
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

/// Two buffers that take turns: one is read into while the other is copied to its device.
class Stager {
 public:
  /// The tensor is whole after finish().
  Tensor read(const TensorRead& read) {
    const Tensor tensor = place_of(read);
    stage(tensor.view({-1}), to_scalar_type(read.stored.dtype),
          [&](const Tensor& staged, int64_t begin) { fill(staged, read.stored, begin); });
    return tensor;
  }

  /// Copies a tensor likewise: it is whole after finish().
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
  /// `fill(staged, begin)` puts the bytes from `begin` on into a buffer; after it they go to `flat`, in the
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
        // First across, then to the other type: copy_ alone would convert on the host.
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

namespace {

/// Whether all experts' parts lie in one tensor, and in the weight beside each other.
bool joins_columns(const WeightSpec& spec) { return has_all_experts(spec.stored.layout) && spec.parts_axis() == 1; }

/// View [experts, out, in] of a tensor of all experts.
Tensor by_expert(const Tensor& stored, const WeightSpec& spec) {
  return spec.stored.layout == Layout::kByExpertColumns ? stored.transpose(1, 2) : stored;
}

/// Whether each expert's outputs lie apart in it, so that they can be seen together with no others' alone.
bool takes_turns(const WeightSpec& spec) {
  return spec.stored.layout == Layout::kByExpertColumns && spec.shape.size() > 1;
}

/// View [experts, outputs of one, in] where weights take turns.
Tensor part_in_turn(const Tensor& stored, const WeightSpec& spec) {
  const int64_t groups = spec.stored.groups / spec.experts;
  return by_expert(stored, spec).unflatten(1, {groups, -1}).select(2, spec.stored.begin);
}

/// View [groups, outputs of each, ...].
Tensor part_by_group(const Tensor& stored, const WeightSpec& spec) {
  // a vector may be stored without a dimension, or with two
  const Tensor outputs = spec.shape.size() == 1                    ? stored.flatten()
                         : spec.stored.layout == Layout::kColumns  ? stored.t()
                         : spec.stored.layout == Layout::kByExpert ? stored.flatten(0, 1)
                                                                   : stored;
  const int64_t groups = spec.stored.groups;
  const int64_t size = spec.stored.tensors.size() > 1 ? outputs.size(0) : spec.shape.front();
  return outputs.unflatten(0, {groups, -1}).narrow(1, spec.stored.begin, size / groups);
}

/// The bytes of the one matrix that a slice is of, of those that the tensor has.
TensorView view_of_matrix(TensorView stored, const PackedSpec& spec) {
  const TensorSlice& slice = spec.slice;
  if (slice.is_whole()) return stored;
  const size_t bytes = stored.bytes.size() / static_cast<size_t>(slice.matrices);
  stored.bytes = stored.bytes.subspan(static_cast<size_t>(slice.matrix) * bytes, bytes);
  stored.shape.erase(stored.shape.begin());
  return stored;
}

}  // namespace

Tensor stored_part(const Tensor& stored, const WeightSpec& spec) {
  if (joins_columns(spec)) return by_expert(stored, spec).transpose(0, 1).flatten(1);
  if (takes_turns(spec)) return part_in_turn(stored, spec).flatten(0, 1);
  return part_by_group(stored, spec).flatten(0, 1);  // of one group: still a view
}

void put_stored_part(const Tensor& stored, const WeightSpec& spec, const Tensor& weight) {
  if (joins_columns(spec))
    by_expert(stored, spec).transpose(0, 1).copy_(weight.unflatten(1, {stored.size(0), -1}));
  else if (takes_turns(spec))
    part_in_turn(stored, spec).copy_(weight.unflatten(0, {spec.experts, -1}));
  else
    part_by_group(stored, spec).copy_(weight.unflatten(0, {spec.stored.groups, -1}));
}

std::vector<Tensor> stored_parts(const WeightSpec& spec, const Tensor& weight) {
  return weight.chunk(static_cast<int64_t>(spec.stored.tensors.size()), spec.parts_axis());
}

std::vector<Tensor> packed_parts(const WeightSpec& spec, const Tensor& weight) {
  return weight.chunk(static_cast<int64_t>(spec.packed.size()), spec.parts_axis());
}

std::optional<TensorView> stored_view(const Checkpoint& checkpoint, const WeightSpec& spec) {
  if (spec.stored.tensors.size() > 1 || !spec.packed.empty() || joins_columns(spec)) return std::nullopt;
  TensorView view = checkpoint.view(spec.stored.tensors.front());
  if (spec.is_whole() && (spec.stored.layout != Layout::kColumns || spec.shape.size() == 1)) {
    view.shape = spec.shape;  // a vector may be stored without a dimension, or with two
    return view;
  }
  const bool is_rows = spec.stored.layout == Layout::kRows || (spec.shape.size() == 1 && spec.stored.groups == 1);
  if (!is_rows) return std::nullopt;
  const auto row_bytes = view.bytes.size() / static_cast<size_t>(spec.stored.shape.front());
  view.bytes = view.bytes.subspan(static_cast<size_t>(spec.stored.begin) * row_bytes,
                                  static_cast<size_t>(spec.shape.front()) * row_bytes);
  view.shape = spec.shape;
  return view;
}

PackedMatrix read_packed(const Checkpoint& checkpoint, const PackedSpec& spec, at::Device device) {
  std::vector<Tensor> parts(spec.parts.size());
  std::vector<TensorRead> reads;
  std::vector<size_t> read_parts;
  for (size_t i = 0; i < spec.parts.size(); ++i) {
    if (spec.parts[i].role == PartRole::kRecord) continue;
    const TensorView stored = view_of_matrix(checkpoint.view(spec.parts[i].tensor), spec);
    reads.push_back({stored, device, to_scalar_type(stored.dtype)});
    read_parts.push_back(i);
  }
  std::vector<Tensor> tensors = read_tensors(reads, [](int64_t) {});
  for (size_t i = 0; i < tensors.size(); ++i) parts[read_parts[i]] = slice_of_matrix(tensors[i], spec).contiguous();
  try {
    return PackedMatrix::assemble(spec, parts);
  } catch (const CheckpointError& error) {
    throw CheckpointError(cat(checkpoint.folder().string(), ": ", error.what()));
  }
}

Tensor read_unpacked(const Checkpoint& checkpoint, const WeightSpec& spec, at::Device device, at::ScalarType type) {
  std::vector<Tensor> matrices;
  for (const PackedSpec& matrix : spec.packed) matrices.push_back(read_packed(checkpoint, matrix, device).unpack(type));
  if (matrices.size() == 1 && spec.packed.front().slice.is_whole()) return stored_part(matrices.front(), spec);
  return torch::cat(matrices, spec.parts_axis());
}

Tensor read_stored(const Checkpoint& checkpoint, const WeightSpec& spec, at::ScalarType unpacked) {
  if (!spec.packed.empty()) return read_unpacked(checkpoint, spec, Placement::host(), unpacked);
  std::vector<Tensor> tensors;
  for (const std::string& name : spec.stored.tensors) tensors.push_back(to_tensor(checkpoint.view(name)));
  return tensors.size() == 1 ? stored_part(tensors.front(), spec) : torch::cat(tensors, spec.parts_axis());
}

}  // namespace lancet
