// The .npz format: a zip file of .npy arrays, as numpy.savez (stored) and numpy.savez_compressed (deflated) write it.
// The reader validates all of the file's structure before anything is used; bytes are read and unpacked on demand.
// Source of the format: numpy, NEP 1 and lib/format.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/dtype.h"
#include "lancet/io/files.h"

namespace lancet {

struct NpzArray {
  std::string name;   ///< name without ".npy"
  std::string descr;  ///< the type's name in the file: "<f4"
  bool fortran_order = false;
  /// kF32, kF64, kI32 or kI64. nullopt: strings, big endian and all other types, which read() refuses; files of memit
  /// hold a string beside the numbers.
  std::optional<DType> dtype;
  std::vector<int64_t> shape;  ///< empty: a scalar
  uint64_t size_bytes = 0;     ///< size of an array that has a dtype
};

class NpzReader {
 public:
  /// Throws: CheckpointError when the file is not a valid .npz file: zip directory, local headers (encryption, unknown
  /// methods, names twice, members that overlap or lie outside), .npy headers, sizes that disagree with dtype x shape.
  static NpzReader open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  /// Arrays in the order of the file's directory.
  const std::vector<NpzArray>& arrays() const { return arrays_; }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Throws: CheckpointError naming the file's arrays when `name` is none of them.
  const NpzArray& info(std::string_view name) const;
  /// The array's bytes, row-major, into `to`, which has exactly its size. Throws: CheckpointError for an array without
  /// a dtype or in Fortran order, damaged compressed data, or bytes that disagree with the file's CRC-32.
  void read(std::string_view name, std::span<std::byte> to) const;

 private:
  struct Member;
  const NpzArray* find(std::string_view name) const;

  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> file_;
  std::vector<NpzArray> arrays_;
  std::vector<std::shared_ptr<const Member>> members_;  // beside arrays_
};

}  // namespace lancet
