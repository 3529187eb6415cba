// Output that a terminal may show.
#include "terminal.h"

#include <gtest/gtest.h>

#include <sstream>

namespace lancet::cli {
namespace {

TEST(VisibleStreams, LetNoControlSequenceThrough) {
  std::ostringstream out;
  {
    const VisibleStream visible(out);
    out << "a\x1b[31mb\n";
  }
  EXPECT_EQ(out.str().find('\x1b'), std::string::npos);
  EXPECT_NE(out.str().find("[31mb\n"), std::string::npos);
}

TEST(VisibleStreams, WaitForTheEndOfACharacter) {
  std::ostringstream out;
  {
    const VisibleStream visible(out);
    out << "\xc3" << std::flush;
    out << "\xa4" << std::flush;
  }
  EXPECT_EQ(out.str(), "ä");
}

TEST(VisibleStreams, StandAsideForData) {
  std::ostringstream out;
  {
    const VisibleStream visible(out);
    const ExactStream exact(out);
    out << "\x1b";
  }
  EXPECT_EQ(out.str(), "\x1b");
}

}  // namespace
}  // namespace lancet::cli
