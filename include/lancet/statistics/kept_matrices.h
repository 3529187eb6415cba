// The matrices that solves take from files, kept where solves are computed from one batch or edit to the next: on the
// solving device, or page-locked on the host where the device has no room. One such owner serves one model, for as long
// as a run or a session lasts. Defined in derived_store.cpp.
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

/// Which matrix, and where it is solved with.
struct FileMatrix {
  std::filesystem::path file;
  int64_t part = 0;  ///< which of the file's matrices
  at::Device device;
};

class KeptMatrices {
 public:
  /// Bytes that may be kept on each device; elsewhere nothing is.
  using Room = std::vector<std::pair<at::Device, int64_t>>;
  /// Reads the matrix from its file, onto the host or the solving device, and checks it.
  using Read = std::function<Tensor()>;

  /// Sets the room, in which nothing is kept yet; without it nothing ever is.
  void set_room(Room room) { room_ = std::move(room); }

  /// The matrix on its device, with the strides that `read` gave it: only to be read. It is read where it is not kept,
  /// or where the file has changed since. A room that is full keeps what is asked for again and again: only what was
  /// not asked for since this matrix was last asked for makes place, the least recently used first. From any thread.
  /// Throws: CheckpointError where the file is absent; as `read`.
  Tensor matrix(const FileMatrix& place, const Read& read);

  /// Sees to it that the file, as it is, was found whole once: by matrix(), where it would keep a matrix of so many
  /// bytes, else by `check`. From any thread. Throws: as matrix() and `check`.
  void check(const FileMatrix& place, int64_t bytes, const Read& read, const std::function<void()>& check);

  /// Matrices read so far.
  int64_t reads() const { return reads_; }
  /// Bytes that are kept on a device; page-locked ones are the host's.
  int64_t kept_bytes(at::Device device) const;

  /// What the host takes for a page-locked matrix: torch locks powers of two.
  static int64_t locked_bytes(int64_t bytes);

 private:
  using Key = std::pair<std::filesystem::path, int64_t>;
  struct Entry {
    FileIdentity file;   ///< the file as it was when it was checked
    Tensor matrix = {};  ///< undefined: not kept
    int64_t bytes = 0;   ///< bytes of the room that it lies in
    int64_t asked = 0;   ///< the clock when it was last asked for; 0: never
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
