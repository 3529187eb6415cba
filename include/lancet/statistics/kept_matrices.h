// Keeps the matrices that solves read from files in memory from one batch or edit to the next: on the solving device,
// or page-locked on the host if the device has no room. One such owner serves one model, as long as a run or a session
// lasts. Defined in derived_store.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "lancet/io/file_handle.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// A matrix in a file, and the device on which it is used.
struct FileMatrix {
  std::filesystem::path file;
  int64_t part = 0;  ///< index of the matrix in the file
  at::Device device;
};

class KeptMatrices {
 public:
  /// The bytes that may be kept on each device; on other devices nothing is kept.
  using Room = std::vector<std::pair<at::Device, int64_t>>;
  /// Reads the matrix from its file to the host or the solving device, and checks it.
  using Read = std::function<Tensor()>;

  /// Sets the room, which is empty at first. Without it nothing is ever kept.
  void set_room(Room room) { room_ = std::move(room); }

  /// Returns the matrix on its device, with the strides that `read` gave it. Do not write to it. It is read if it is
  /// not kept, or if the file has changed since. If the room is full, matrices that are used again and again stay: a
  /// matrix may be evicted only if it was not requested since the last request for the new one, the least recently used
  /// first. Thread-safe. Throws: CheckpointError if the file is absent; as `read`.
  Tensor matrix(const FileMatrix& place, const Read& read);

  /// Validates the current file once: with matrix() if that would keep a matrix of `bytes` bytes, else with `check`.
  /// Thread-safe. Throws: as matrix() and `check`.
  void check(const FileMatrix& place, int64_t bytes, const Read& read, const std::function<void()>& check);

  /// Returns the number of matrices read so far.
  int64_t reads() const { return reads_; }
  /// Returns the bytes that are kept on a device; page-locked ones count for the host.
  int64_t kept_bytes(at::Device device) const;

  /// Returns the host memory that a page-locked matrix takes: torch locks powers of two.
  static int64_t locked_bytes(int64_t bytes);

 private:
  using Key = std::pair<std::filesystem::path, int64_t>;
  struct Entry {
    FileIdentity file;   ///< the file as it was when it was checked
    Tensor matrix = {};  ///< undefined: not kept
    int64_t bytes = 0;   ///< bytes that it takes of the room
    int64_t asked = 0;   ///< time of the last request on the internal clock; 0: never
  };

  bool has_room(const FileMatrix& place, int64_t bytes) const;
  int64_t room_on(at::Device device) const;
  int64_t bytes_on(at::Device device) const;
  bool make_place(at::Device device, int64_t bytes, int64_t since);
  void keep(Entry& entry, const Tensor& matrix, const FileMatrix& place, int64_t since);

  mutable std::mutex mutex_;
  Room room_;
  std::map<Key, Entry> entries_;
  int64_t clock_ = 0;
  int64_t reads_ = 0;
};

}  // namespace lancet
