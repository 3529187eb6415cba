// An OpenFile as a std::istream. std::ifstream is not used, because if a signal interrupts its opening it becomes an
// empty stream, which looks like the end of a corpus.
#pragma once

#include <filesystem>
#include <istream>
#include <streambuf>
#include <vector>

#include "lancet/core/text_file.h"

namespace lancet {

class FileBuffer : public std::streambuf {
 public:
  explicit FileBuffer(const std::filesystem::path& path) : file_(path), bytes_(kBytes) {}

 protected:
  /// Throws: FileProblem, which a std::istream turns into badbit.
  int_type underflow() override {
    const size_t got = file_.read(bytes_);
    if (got == 0) return traits_type::eof();
    setg(bytes_.data(), bytes_.data(), bytes_.data() + got);
    return traits_type::to_int_type(*gptr());
  }

 private:
  static constexpr size_t kBytes = 64 * 1024;
  OpenFile file_;
  std::vector<char> bytes_;
};

class FileStream : public std::istream {
 public:
  /// Throws: FileProblem.
  explicit FileStream(const std::filesystem::path& path) : std::istream(nullptr), buffer_(path) { rdbuf(&buffer_); }

 private:
  FileBuffer buffer_;
};

}  // namespace lancet
