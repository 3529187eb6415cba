// The bytes of an answer as they come: status line, headers, and a body that is as long as it says, or in chunks, or
// up to the connection's end.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "lancet/http/http_client.h"

namespace lancet {

/// An answer that is none: what is wrong with it.
class BadHttpAnswer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class HttpAnswerReader {
 public:
  explicit HttpAnswerReader(const HttpQuestionLimits& limits) : limits_(limits) {}

  /// Throws: BadHttpAnswer for what is no HTTP, or longer than the limits.
  void add(std::string_view bytes);
  /// The connection ended. Throws: BadHttpAnswer where more was announced.
  void end();

  bool is_complete() const { return part_ == Part::kDone; }
  HttpAnswer take() { return std::move(answer_); }

 private:
  enum class Part { kHead, kLength, kToTheEnd, kChunkSize, kChunk, kChunkEnd, kTrailer, kDone };

  void read_head(std::string_view head);
  void read_header(std::string_view line);
  /// Takes what is there of the part; false: more bytes are needed.
  bool step();
  bool take_head();
  bool take_body();
  bool take_chunk_line();
  std::optional<std::string> take_line();
  /// What came first, for a message.
  std::string printable_start() const;

  HttpQuestionLimits limits_;
  Part part_ = Part::kHead;
  std::string bytes_;             ///< that came and were not taken
  std::optional<size_t> length_;  ///< bytes of the body, as the head says
  size_t left_ = 0;               ///< bytes of the body, or of a chunk, that are to come
  size_t trailer_bytes_ = 0;      ///< bytes of lines between and after chunks
  bool is_chunked_ = false;
  HttpAnswer answer_;
};

}  // namespace lancet
