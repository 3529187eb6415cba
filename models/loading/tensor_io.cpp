#include "lancet/models/tensor_io.h"

#include <torch/types.h>

#include <algorithm>
#include <stdexcept>

#include "lancet/runtime/placement.h"

namespace lancet {

Tensor to_tensor(const TensorView& view) {
  const auto options = torch::TensorOptions(to_scalar_type(view.dtype));
  const auto address = reinterpret_cast<uintptr_t>(view.bytes.data());
  if (address % static_cast<uintptr_t>(bytes_per_element(view.dtype)) == 0) {
    // torch takes a mutable pointer; the mapping is read-only and the tensor is only read.
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
