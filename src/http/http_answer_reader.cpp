#include "http_answer_reader.h"

#include <algorithm>
#include <charconv>

#include "lancet/core/strings.h"
#include "lower_case.h"

namespace lancet {
namespace {

constexpr size_t kLongestLine = 4096;  ///< largest number of bytes in a chunk's line
constexpr std::string_view kBlanks = " \t";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Parses the whole text as a number. Throws: BadHttpAnswer.
size_t number_of(std::string_view text, int base, const char* what) {
  size_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size())
    throw BadHttpAnswer(cat("the answer is no HTTP: ", what, " '", excerpt(text, 40), "'"));
  return number;
}

}  // namespace

void HttpAnswerReader::add(std::string_view bytes) {
  bytes_ += bytes;
  while (step()) {
  }
}

void HttpAnswerReader::end() {
  if (part_ == Part::kToTheEnd) part_ = Part::kDone;
  if (part_ == Part::kDone) return;
  throw BadHttpAnswer(part_ == Part::kHead && bytes_.empty() ? "the server closed the connection without an answer"
                                                             : "the server closed the connection within its answer");
}

bool HttpAnswerReader::step() {
  switch (part_) {
    case Part::kHead:
      return take_head();
    case Part::kLength:
    case Part::kToTheEnd:
    case Part::kChunk:
      return take_body();
    case Part::kChunkSize:
    case Part::kChunkEnd:
    case Part::kTrailer:
      return take_chunk_line();
    case Part::kDone:
      return false;
  }
  return false;
}

bool HttpAnswerReader::take_head() {
  const size_t end = bytes_.find("\r\n\r\n");
  if (std::min(end, bytes_.size()) > limits_.head_bytes)
    throw BadHttpAnswer(cat("the answer's head is longer than ", limits_.head_bytes, " bytes"));
  if (end == std::string::npos) {
    if (!std::string_view("HTTP/1.").starts_with(std::string_view(bytes_).substr(0, 7)))
      throw BadHttpAnswer(cat("the answer is no HTTP: it begins with '", printable_start(), "'"));
    return false;
  }
  read_head(std::string_view(bytes_).substr(0, end));
  bytes_.erase(0, end + 4);
  if (answer_.status >= 100 && answer_.status < 200) {  // such as "100 Continue": the real answer follows
    length_.reset();
    is_chunked_ = false;
    return true;
  }
  const bool has_no_body = answer_.status == 204 || answer_.status == 304;
  left_ = length_.value_or(0);
  part_ = has_no_body     ? Part::kDone
          : is_chunked_   ? Part::kChunkSize
          : !length_      ? Part::kToTheEnd
          : *length_ == 0 ? Part::kDone
                          : Part::kLength;
  if (left_ > limits_.body_bytes) throw BadHttpAnswer(cat("the answer is longer than ", limits_.body_bytes, " bytes"));
  return true;
}

std::string HttpAnswerReader::printable_start() const {
  std::string start = bytes_.substr(0, 20);
  std::replace_if(
      start.begin(), start.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return start;
}

void HttpAnswerReader::read_head(std::string_view head) {
  const size_t line_end = std::min(head.find("\r\n"), head.size());
  const std::string_view status = head.substr(0, line_end);
  if (!status.starts_with("HTTP/1.") || status.size() < 12 || status[8] != ' ')
    throw BadHttpAnswer(cat("the answer is no HTTP: it begins with '", printable_start(), "'"));
  answer_.status = static_cast<int>(number_of(status.substr(9, 3), 10, "its status is"));
  for (size_t at = line_end; at < head.size();) {
    at += 2;
    const size_t end = std::min(head.find("\r\n", at), head.size());
    read_header(head.substr(at, end - at));
    at = end;
  }
}

void HttpAnswerReader::read_header(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 || kBlanks.find(line.front()) != std::string_view::npos)
    throw BadHttpAnswer("the answer is no HTTP: a header without a name");
  const std::string name = lower_case(std::string(line.substr(0, colon)));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (name == "transfer-encoding") {
    if (lower_case(std::string(value)) != "chunked")
      throw BadHttpAnswer(cat("the answer is in a form that was not asked for: ", excerpt(value, 40)));
    is_chunked_ = true;
  } else if (name == "content-encoding" && lower_case(std::string(value)) != "identity") {
    throw BadHttpAnswer(cat("the answer is in a form that was not asked for: ", excerpt(value, 40)));
  } else if (name == "content-length") {
    const size_t length = number_of(value, 10, "its length is");
    if (length_ && *length_ != length) throw BadHttpAnswer("the answer is no HTTP: it says two lengths");
    length_ = length;
  }
}

bool HttpAnswerReader::take_body() {
  if (bytes_.empty()) return false;
  const size_t taken = part_ == Part::kToTheEnd ? bytes_.size() : std::min(left_, bytes_.size());
  if (answer_.body.size() + taken > limits_.body_bytes)
    throw BadHttpAnswer(cat("the answer is longer than ", limits_.body_bytes, " bytes"));
  answer_.body.append(bytes_, 0, taken);
  bytes_.erase(0, taken);
  if (part_ == Part::kToTheEnd) return false;
  left_ -= taken;
  if (left_ > 0) return false;
  part_ = part_ == Part::kChunk ? Part::kChunkEnd : Part::kDone;
  return true;
}

std::optional<std::string> HttpAnswerReader::take_line() {
  const size_t end = bytes_.find("\r\n");
  if (std::min(end, bytes_.size()) > kLongestLine) throw BadHttpAnswer("the answer is no HTTP: a chunk's line is long");
  if (end == std::string::npos) return std::nullopt;
  std::string line = bytes_.substr(0, end);
  bytes_.erase(0, end + 2);
  trailer_bytes_ += line.size() + 2;
  if (trailer_bytes_ > limits_.body_bytes) throw BadHttpAnswer("the answer is no HTTP: it has more chunks than text");
  return line;
}

bool HttpAnswerReader::take_chunk_line() {
  const std::optional<std::string> line = take_line();
  if (!line) return false;
  if (part_ == Part::kTrailer) {
    if (line->empty()) part_ = Part::kDone;
  } else if (part_ == Part::kChunkEnd) {
    if (!line->empty()) throw BadHttpAnswer("the answer is no HTTP: a chunk is longer than it says");
    part_ = Part::kChunkSize;
  } else {
    left_ = number_of(trimmed(std::string_view(*line).substr(0, line->find(';'))), 16, "a chunk's length is");
    part_ = left_ == 0 ? Part::kTrailer : Part::kChunk;
  }
  return true;
}

}  // namespace lancet
