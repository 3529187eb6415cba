// Bytes of an open file as a std::istream. std::ifstream is not used: where a signal interrupts its opening it is an
// empty stream, which reads like the end of a corpus.
#pragma once

#include <istream>
#include <streambuf>
#include <utility>
#include <vector>

#include "file_handle.h"

namespace lancet {

class FileBuffer : public std::streambuf {
 public:
  explicit FileBuffer(FileHandle file) : file_(std::move(file)), bytes_(kBytes) {}

 protected:
  /// Throws: CheckpointError, which a std::istream takes for badbit.
  int_type underflow() override {
    const size_t got = file_.read(std::as_writable_bytes(std::span(bytes_)));
    if (got == 0) return traits_type::eof();
    setg(bytes_.data(), bytes_.data(), bytes_.data() + got);
    return traits_type::to_int_type(*gptr());
  }

 private:
  static constexpr size_t kBytes = 64 * 1024;
  FileHandle file_;
  std::vector<char> bytes_;
};

class FileStream : public std::istream {
 public:
  explicit FileStream(FileHandle file) : std::istream(nullptr), buffer_(std::move(file)) { rdbuf(&buffer_); }

 private:
  FileBuffer buffer_;
};

}  // namespace lancet
