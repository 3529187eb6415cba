// Text of a gzip file as a std::istream.
#pragma once

#include <zlib.h>

#include <istream>
#include <memory>
#include <new>
#include <streambuf>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {

inline constexpr size_t kGzipBufferBytes = 256 * 1024;
inline constexpr int kGzipOnly = 16 + MAX_WBITS;
inline constexpr std::string_view kGzipRemedy =
    "; copy or download the file again, or unpack it and name the unpacked file";

/// The text of a gzip file. Several members one after another, as `cat a.gz b.gz` makes them, are one text. zlib's own
/// gzFile is not used: it reads a file that is not gzip as plain text, and stops without an error at a damaged later
/// member, so that part of a corpus would be missing unnoticed.
class GzipBuffer : public std::streambuf {
 public:
  /// `name`: the beginning of messages.
  GzipBuffer(std::unique_ptr<std::istream> file, std::string name)
      : file_(std::move(file)), name_(std::move(name)), stored_(kGzipBufferBytes), text_(kGzipBufferBytes) {
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~GzipBuffer() override { inflateEnd(&stream_); }
  GzipBuffer(const GzipBuffer&) = delete;
  GzipBuffer& operator=(const GzipBuffer&) = delete;

 protected:
  int_type underflow() override {
    stream_.next_out = reinterpret_cast<Bytef*>(text_.data());
    stream_.avail_out = static_cast<uInt>(text_.size());
    while (stream_.avail_out == text_.size()) {
      if (stream_.avail_in == 0 && !refill()) {
        if (!inside_) return traits_type::eof();
        throw ConfigError(
            cat(name_, ": expected gzip data, got a file that is cut: its last member has no end", kGzipRemedy));
      }
      if (!inside_) inflateReset(&stream_);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      if (status != Z_OK && status != Z_STREAM_END)
        throw ConfigError(cat(name_, ": expected gzip data, got data that is damaged or not gzip: ",
                              stream_.msg != nullptr ? stream_.msg : "unknown cause", kGzipRemedy));
      inside_ = status != Z_STREAM_END;
    }
    setg(text_.data(), text_.data(), text_.data() + (text_.size() - stream_.avail_out));
    return traits_type::to_int_type(*gptr());
  }

 private:
  /// Returns false at the end of the file.
  bool refill() {
    file_->read(stored_.data(), static_cast<std::streamsize>(stored_.size()));
    if (file_->bad()) throw ConfigError(cat(name_, ": the disk cannot read the file", kGzipRemedy));
    stream_.next_in = reinterpret_cast<Bytef*>(stored_.data());
    stream_.avail_in = static_cast<uInt>(file_->gcount());
    return file_->gcount() > 0;
  }

  std::unique_ptr<std::istream> file_;
  std::string name_;
  std::vector<char> stored_;
  std::vector<char> text_;
  z_stream stream_{};
  /// Whether the end of a member is still expected. It is expected at the beginning, because an empty file is not a
  /// gzip file.
  bool inside_ = true;
};

class GzipStream : public std::istream {
 public:
  GzipStream(std::unique_ptr<std::istream> file, std::string name)
      : std::istream(nullptr), buffer_(std::move(file), std::move(name)) {
    rdbuf(&buffer_);
    exceptions(std::ios::badbit);  // otherwise an istream hides the exceptions of its buffer
  }

 private:
  GzipBuffer buffer_;
};

}  // namespace lancet
