// Standard output and error as a person may read them: nothing from a file or a model reaches a terminal as a control
// sequence, whatever command prints it.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace lancet::cli {

/// Sends what is written to `stream` through visible_text(), while this lives.
class VisibleStream final : public std::streambuf {
 public:
  explicit VisibleStream(std::ostream& stream);
  ~VisibleStream() override;
  VisibleStream(const VisibleStream&) = delete;
  VisibleStream& operator=(const VisibleStream&) = delete;

 private:
  friend class ExactStream;
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;
  /// The first `count` bytes of what waits. False when the stream below refuses them.
  bool pass_on(size_t count);

  std::ostream& stream_;
  std::streambuf* below_;
  std::string waiting_;
};

/// Lets `stream` take bytes as they are, while this lives: output that is data, for a file or another program.
class ExactStream {
 public:
  explicit ExactStream(std::ostream& stream);
  ~ExactStream();
  ExactStream(const ExactStream&) = delete;
  ExactStream& operator=(const ExactStream&) = delete;

 private:
  std::ostream& stream_;
  std::streambuf* before_;
};

}  // namespace lancet::cli
