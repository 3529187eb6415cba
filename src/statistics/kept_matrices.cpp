#include "lancet/statistics/kept_matrices.h"

#include <torch/types.h>

#include <algorithm>
#include <bit>

#include "lancet/models/tensor_reader.h"
#include "lancet/runtime/placement.h"

namespace lancet {
namespace {

int64_t bytes_of(const Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

/// A copy in memory from which the device copies at its full rate.
Tensor page_locked(const Tensor& matrix, at::Device device) {
  const Tensor dense = matrix.is_non_overlapping_and_dense() ? matrix : matrix.contiguous();
  return Placement::staging_buffer(bytes_of(dense), device)
      .view(dense.scalar_type())
      .as_strided(dense.sizes(), dense.strides())
      .copy_(dense);
}

}  // namespace

int64_t KeptMatrices::locked_bytes(int64_t bytes) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)));
}

int64_t KeptMatrices::room_on(at::Device device) const {
  const auto at = std::ranges::find(room_, device, &Room::value_type::first);
  return at == room_.end() ? 0 : at->second;
}

int64_t KeptMatrices::bytes_on(at::Device device) const {
  int64_t bytes = 0;
  for (const auto& [key, entry] : entries_)
    if (entry.matrix.defined() && entry.matrix.device() == device) bytes += entry.bytes;
  return bytes;
}

bool KeptMatrices::make_place(at::Device device, int64_t bytes, int64_t since) {
  const int64_t room = room_on(device);
  int64_t taken = bytes_on(device);
  std::vector<Entry*> idle;
  for (auto& [key, entry] : entries_)
    if (entry.matrix.defined() && entry.matrix.device() == device && entry.asked < since) idle.push_back(&entry);
  std::ranges::sort(idle, {}, &Entry::asked);
  size_t n_leaving = 0;
  while (taken + bytes > room && n_leaving < idle.size()) taken -= idle[n_leaving++]->bytes;
  if (taken + bytes > room) return false;
  for (size_t i = 0; i < n_leaving; ++i) idle[i]->matrix.reset();
  return true;
}

void KeptMatrices::keep(Entry& entry, const Tensor& matrix, const FileMatrix& place, int64_t since) {
  const int64_t bytes = bytes_of(matrix);
  const at::Device host = Placement::host();
  if (make_place(place.device, bytes, since)) {
    entry.matrix = upload(matrix, place.device);
    entry.bytes = bytes;
  } else if (place.device != host && make_place(host, locked_bytes(bytes), since)) {
    entry.matrix = page_locked(matrix, place.device);
    entry.bytes = locked_bytes(bytes);
  }
}

Tensor KeptMatrices::matrix(const FileMatrix& place, const Read& read) {
  const torch::NoGradGuard no_grad;
  const std::lock_guard lock(mutex_);
  const FileIdentity file = identify_file(place.file);
  Entry& entry = entries_[{place.file, place.part}];
  const int64_t since = std::exchange(entry.asked, ++clock_);
  if (entry.matrix.defined() && entry.file == file) {
    if (entry.matrix.device() == place.device) return entry.matrix;
    const Tensor there = entry.matrix.to(place.device, /*non_blocking=*/true);
    if (make_place(place.device, bytes_of(there), since)) {
      entry.matrix = there;
      entry.bytes = bytes_of(there);
    }
    return there;
  }
  entry.matrix.reset();
  entry.file = {};
  const Tensor matrix = read();
  ++reads_;
  // what was written to while it was read is used, since it was checked, but looked at again the next time
  if (identify_file(place.file) != file) return upload(matrix, place.device);
  entry.file = file;
  keep(entry, matrix, place, since);
  if (!entry.matrix.defined()) return upload(matrix, place.device);
  return entry.matrix.to(place.device, /*non_blocking=*/true);
}

bool KeptMatrices::has_room(const FileMatrix& place, int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto fits = [&](at::Device device, int64_t size) { return bytes_on(device) + size <= room_on(device); };
  const at::Device host = Placement::host();
  return fits(place.device, bytes) || (place.device != host && fits(host, locked_bytes(bytes)));
}

void KeptMatrices::check(const FileMatrix& place, int64_t bytes, const Read& read, const std::function<void()>& check) {
  const FileIdentity file = identify_file(place.file);
  const Key key{place.file, place.part};
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = entries_.find(key); at != entries_.end() && at->second.file == file) return;
  }
  if (has_room(place, bytes)) {
    matrix(place, read);
    return;
  }
  check();
  if (identify_file(place.file) != file) return;
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  if (entry.file != file) entry = {.file = file, .asked = entry.asked};
}

int64_t KeptMatrices::kept_bytes(at::Device device) const {
  const std::lock_guard lock(mutex_);
  return bytes_on(device);
}

}  // namespace lancet
