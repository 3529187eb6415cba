// Reads a GGUF file's bytes in order, past its mapping, and never beyond its end.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/gguf_file.h"

namespace lancet {

/// No text that somebody reads is as long: a chat template takes a thousandth.
inline constexpr uint64_t kLongestGgufText = 16'000'000;

class HeadReader {
 public:
  HeadReader(const MappedFile& file, uint64_t begin) : file_(file), size_(file.bytes().size()), at_(begin) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return size_ - at_; }
  /// What is read next; for messages.
  void set_subject(std::string subject) { subject_ = std::move(subject); }

  template <typename Number>
  Number take() {
    Number number;
    copy(std::as_writable_bytes(std::span(&number, 1)));
    return number;
  }

  /// Its length, of 64 bits, then its bytes.
  std::string take_text(uint64_t longest) {
    const uint64_t length = take<uint64_t>();
    if (length > longest) fail(cat("a text of at most ", longest, " bytes"), cat("one of ", length));
    need(length);
    std::string text(length, '\0');
    copy(std::as_writable_bytes(std::span(text)));
    return text;
  }

  void skip_text() {
    const uint64_t length = take<uint64_t>();
    need(length);
    at_ += length;
  }

  /// `count` values of `size` bytes.
  void skip(uint64_t count, uint64_t size) {
    if (count > left() / size) need(left() + 1);
    at_ += count * size;
  }

  void need(uint64_t bytes) const {
    if (bytes > left()) fail(cat(bytes, " more bytes"), cat(left(), " to the file's end"));
  }

  [[noreturn]] void fail(std::string_view expected, std::string_view got) const {
    refuse(expected, cat(got, ": the file is cut or damaged, download it again"));
  }

  /// Likewise, of what is in order and not read.
  [[noreturn]] void refuse(std::string_view expected, std::string_view got) const {
    throw CheckpointError(cat(file_.path().string(), ": ", subject_, ": expected ", expected, ", got ", got));
  }

 private:
  void copy(std::span<std::byte> to) {
    need(to.size());
    while (!to.empty()) {
      if (at_ < begin_ || at_ >= begin_ + buffer_.size()) fill();
      const uint64_t place = at_ - begin_;
      const size_t some = std::min<size_t>(to.size(), buffer_.size() - place);
      std::memcpy(to.data(), buffer_.data() + place, some);
      to = to.subspan(some);
      at_ += some;
    }
  }

  void fill() {
    constexpr uint64_t kBuffer = 1 << 16;
    begin_ = at_;
    buffer_.resize(std::min(kBuffer, left()));
    file_.read(begin_, std::as_writable_bytes(std::span(buffer_)));
  }

  const MappedFile& file_;
  uint64_t size_;
  uint64_t at_;
  uint64_t begin_ = 0;
  std::vector<char> buffer_;
  std::string subject_ = "the head";
};

}  // namespace lancet
