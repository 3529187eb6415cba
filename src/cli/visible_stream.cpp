#include "visible_stream.h"

#include "lancet/core/visible_text.h"

namespace lancet::cli {

VisibleStream::VisibleStream(std::ostream& stream) : stream_(stream), below_(stream.rdbuf(this)) {}

VisibleStream::~VisibleStream() {
  const bool is_whole = pass_on(waiting_.size()) && below_->pubsync() == 0;
  stream_.rdbuf(below_);  // also clears the stream's state
  if (!is_whole) stream_.setstate(std::ios::badbit);
}

bool VisibleStream::pass_on(size_t count) {
  const std::string shown = visible_text(std::string_view(waiting_).substr(0, count));
  waiting_.erase(0, count);
  return below_->sputn(shown.data(), static_cast<std::streamsize>(shown.size())) ==
         static_cast<std::streamsize>(shown.size());
}

VisibleStream::int_type VisibleStream::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  const char one = traits_type::to_char_type(character);
  return xsputn(&one, 1) == 1 ? character : traits_type::eof();
}

std::streamsize VisibleStream::xsputn(const char* text, std::streamsize count) {
  waiting_.append(text, static_cast<size_t>(count));
  return pass_on(whole_characters(waiting_)) ? count : 0;
}

/// A character that has begun waits for its end.
int VisibleStream::sync() { return pass_on(whole_characters(waiting_)) ? below_->pubsync() : -1; }

ExactStream::ExactStream(std::ostream& stream) : stream_(stream), before_(stream.rdbuf()) {
  if (const auto* visible = dynamic_cast<VisibleStream*>(before_)) {
    stream.flush();
    stream.rdbuf(visible->below_);
  }
}

ExactStream::~ExactStream() {
  const std::ios::iostate state = stream_.rdstate();
  stream_.rdbuf(before_);
  stream_.setstate(state);
}

}  // namespace lancet::cli
