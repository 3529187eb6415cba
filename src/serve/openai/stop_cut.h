// Cuts a growing text at the first stop text in it. A possible beginning of a stop text is held back.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace lancet {

class StopCut {
 public:
  explicit StopCut(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// `text`: the whole text so far, which begins with the text of the last call. Returns the new part of it, without
  /// any part of a stop text.
  std::string advance(const std::string& text) {
    if (is_stopped_) return {};
    size_t end = text.size();
    for (const std::string& stop : stops_) {
      const size_t from = told_.size();
      if (const size_t at = text.find(stop, from); at < end || (at == end && at != std::string::npos)) {
        end = at;
        is_stopped_ = true;
      }
    }
    if (!is_stopped_)
      for (const std::string& stop : stops_) end = std::min(end, begin_of(stop, text));
    return tell(text, end);
  }

  /// Returns the rest, when the text is complete.
  std::string finish(const std::string& text) {
    std::string more = advance(text);
    return is_stopped_ ? more : more + tell(text, text.size());
  }

  bool is_stopped() const { return is_stopped_; }
  /// Returns everything that was given out.
  const std::string& told() const { return told_; }

 private:
  /// Returns where the longest end of the text begins that is also a beginning of the stop text; the text's size if
  /// there is none.
  static size_t begin_of(const std::string& stop, const std::string& text) {
    for (size_t length = std::min(stop.size() - 1, text.size()); length > 0; --length)
      if (text.ends_with(stop.substr(0, length))) return text.size() - length;
    return text.size();
  }

  std::string tell(const std::string& text, size_t end) {
    if (end <= told_.size()) return {};
    std::string more = text.substr(told_.size(), end - told_.size());
    told_ += more;
    return more;
  }

  std::vector<std::string> stops_;
  std::string told_;
  bool is_stopped_ = false;
};

}  // namespace lancet
