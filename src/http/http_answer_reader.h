// Reads the bytes of an answer as they come: status line, headers, and a body that has the announced length, comes in
// chunks, or ends with the connection.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "lancet/http/http_client.h"

namespace lancet {

/// An answer that is not valid, with the reason.
class BadHttpAnswer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class HttpAnswerReader {
 public:
  explicit HttpAnswerReader(const HttpQuestionLimits& limits) : limits_(limits) {}

  /// Throws: BadHttpAnswer if the bytes are not HTTP, or exceed the limits.
  void add(std::string_view bytes);
  /// The connection ended. Throws: BadHttpAnswer if more bytes were announced.
  void end();

  bool is_complete() const { return part_ == Part::kDone; }
  HttpAnswer take() { return std::move(answer_); }

 private:
  enum class Part { kHead, kLength, kToTheEnd, kChunkSize, kChunk, kChunkEnd, kTrailer, kDone };

  void read_head(std::string_view head);
  void read_header(std::string_view line);
  /// Reads the available bytes of the current part. Returns false if more bytes are needed.
  bool step();
  bool take_head();
  bool take_body();
  bool take_chunk_line();
  std::optional<std::string> take_line();
  /// Returns the first bytes, for a message.
  std::string printable_start() const;

  HttpQuestionLimits limits_;
  Part part_ = Part::kHead;
  std::string bytes_;             ///< received bytes that are not parsed yet
  std::optional<size_t> length_;  ///< length of the body, if the head says it
  size_t left_ = 0;               ///< remaining bytes of the body, or of a chunk
  size_t trailer_bytes_ = 0;      ///< bytes of the lines between chunks and after them
  bool is_chunked_ = false;
  HttpAnswer answer_;
};

}  // namespace lancet
