#include "lancet/core/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "lancet/core/reporter.h"

namespace lancet {
namespace {

/// Every number and time unit that depends on the machine as "#".
std::string masked(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_not_of("0123456789.", at), text.size());
    const bool is_measured = end > at && (text.compare(end, 3, " ms") == 0 || text.compare(end, 2, "/s") == 0);
    if (end == at)
      out += text[at++];
    else
      out += is_measured ? "#" : text.substr(at, end - at);
    at = std::max(at, end);
  }
  return out;
}

size_t count(std::string_view text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

class QuietWhileAlive {
 public:
  QuietWhileAlive() { stderr_reporter().set_verbosity(Verbosity::kQuiet); }
  ~QuietWhileAlive() { stderr_reporter().set_verbosity(Verbosity::kNormal); }
};

/// What `act` writes to stderr when that is no terminal.
std::string captured(const std::function<void()>& act) {
  ::testing::internal::CaptureStderr();
  act();
  return ::testing::internal::GetCapturedStderr();
}

/// Containers and chroots may lack pseudo-terminals.
bool terminals_exist() {
  const int ours = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (ours < 0) return false;
  ::close(ours);
  return true;
}

/// What `act` writes to stderr when that is a terminal of `columns` columns.
std::string captured_on_terminal(unsigned short columns, const std::function<void()>& act) {
  const int ours = ::posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_GE(ours, 0);
  EXPECT_EQ(::grantpt(ours), 0);
  EXPECT_EQ(::unlockpt(ours), 0);
  const int theirs = ::open(::ptsname(ours), O_RDWR | O_NOCTTY);
  EXPECT_GE(theirs, 0);
  winsize size{};
  size.ws_col = columns;
  EXPECT_EQ(::ioctl(theirs, TIOCSWINSZ, &size), 0);
  ::setenv("TERM", "xterm", 1);
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(theirs, STDERR_FILENO);
  act();
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  ::close(theirs);
  // The kernel hands the text on in pieces; with the other end closed, reading fails after the last one.
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t length = 0; (length = ::read(ours, piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<size_t>(length));
  ::close(ours);
  return text;
}

TEST(DurationText, HasTwoUnitsAtMost) {
  EXPECT_EQ(duration_text(0.85), "850 ms");
  EXPECT_EQ(duration_text(12.34), "12.3 s");
  EXPECT_EQ(duration_text(250), "4 min 10 s");
  EXPECT_EQ(duration_text(7500), "2 h 05 min");
  EXPECT_EQ(duration_text(0), "0 ms");
}

TEST(DurationText, RoundsIntoTheNextUnit) {
  EXPECT_EQ(duration_text(0.9994), "999 ms");
  EXPECT_EQ(duration_text(0.9996), "1.0 s");
  EXPECT_EQ(duration_text(59.94), "59.9 s");
  EXPECT_EQ(duration_text(59.96), "1 min 0 s");
  EXPECT_EQ(duration_text(3599.4), "59 min 59 s");
  EXPECT_EQ(duration_text(3599.6), "1 h 00 min");
  EXPECT_EQ(duration_text(7199.0), "2 h 00 min");
  EXPECT_EQ(duration_text(360000), "100 h 00 min");
}

TEST(DurationText, SurvivesWhatIsNoDuration) {
  EXPECT_EQ(duration_text(-1), "0 ms");
  EXPECT_EQ(duration_text(0.0 / 0.0 * 1.0), "0 ms");
  EXPECT_FALSE(duration_text(1e300).empty());
}

TEST(LogLine, GoesToStderrUnlessQuiet) {
  EXPECT_EQ(captured([] { log_line("hello"); }), "hello\n");
  EXPECT_EQ(captured([] { log_warning("careful"); }), "warning: careful\n");
  const QuietWhileAlive quiet;
  EXPECT_EQ(stderr_reporter().verbosity(), Verbosity::kQuiet);
  EXPECT_EQ(captured([] { log_line("hello"); }), "");
  EXPECT_EQ(captured([] { log_warning("careful"); }), "warning: careful\n");
}

TEST(Progress, IsOnePlainLineForAShortStageWithoutATerminal) {
  const std::string text = captured([] {
    Progress progress("values", 100, "requests");
    for (int i = 0; i < 100; ++i) progress.advance();
    progress.note("loss 0.31");
    progress.finish();
    progress.finish();
  });
  EXPECT_EQ(masked(text), "values  100/100 requests  in # ms  #/s  loss 0.31\n");
}

TEST(Progress, LeavesOutAnUnknownTotal) {
  const std::string text = captured([] { Progress("reading", 0, "documents").set(7); });
  EXPECT_EQ(masked(text), "reading  7 documents  in # ms  #/s\n");
}

TEST(Progress, SaysWhenAnExceptionEndedTheStage) {
  const std::string text = captured([] {
    try {
      Progress progress("values", 100, "requests");
      progress.set(3);
      throw std::runtime_error("x");
    } catch (const std::runtime_error&) {
    }
  });
  EXPECT_NE(text.find("values  3/100 requests  stopped after "), std::string::npos) << text;
}

TEST(Progress, IsSilentWhenQuiet) {
  if (!terminals_exist()) GTEST_SKIP() << "no pseudo-terminal here";
  const QuietWhileAlive quiet;
  const auto act = [] { Progress("values", 2, "requests").advance(2); };
  EXPECT_EQ(captured(act), "");
  EXPECT_EQ(captured_on_terminal(80,
                                 [&] {
                                   act();
                                   log_warning("end");
                                 }),
            "warning: end\r\n");
}

TEST(Progress, RedrawsOneLineOnATerminal) {
  if (!terminals_exist()) GTEST_SKIP() << "no pseudo-terminal here";
  const std::string text = captured_on_terminal(80, [] {
    Progress progress("values", 4, "requests");
    for (int i = 0; i < 4; ++i) {
      ::usleep(60'000);
      progress.advance();
    }
  });
  // Drawn at once, then every 100 ms at most, and in the end the whole line that stays.
  EXPECT_EQ(text.find("\r\x1b[Kvalues  0/4 requests\r\x1b[Kvalues  2/4 requests  "), 0U) << text;
  EXPECT_EQ(text.find("left"), std::string::npos) << "nothing meaningful is known of the time yet: " << text;
  EXPECT_LE(count(text, "\r\x1b[K"), 4U) << text;
  const std::string last = "\r\x1b[Kvalues  4/4 requests  in # ms  #/s\r\n";
  EXPECT_TRUE(masked(text).ends_with(last)) << text;
}

TEST(Progress, LeavesWorkOfAnEarlierRunOutOfTheRate) {
  if (!terminals_exist()) GTEST_SKIP() << "no pseudo-terminal here";
  const auto last_line = [](int64_t skipped) {
    return captured_on_terminal(80, [&] {
      Progress progress("values", 1'000'002, "requests");
      if (skipped > 0) progress.skip(skipped);
      ::usleep(60'000);
      progress.advance(2);
    });
  };
  // two requests in 60 ms or more: never thousands a second
  const std::string text = last_line(1'000'000);
  EXPECT_NE(text.find("values  1000002/1000002 requests  in "), std::string::npos) << text;
  EXPECT_TRUE(masked(text).ends_with("requests  in # ms  #/s\r\n")) << text;
  const size_t rate = text.rfind("ms  ") + 4;
  EXPECT_LE(std::stod(text.substr(rate)), 2 / 0.06) << text;
}

/// The clock of stages stands still but for the tests, which see a line every ten seconds.
class TimedProgress : public ::testing::Test {
 protected:
  void SetUp() override {
    seconds_now = 1'000;
    set_stage_clock([] { return StageTime(std::chrono::seconds(seconds_now.load())); });
  }
  void TearDown() override { set_stage_clock(nullptr); }

  static std::atomic<int64_t> seconds_now;
};
std::atomic<int64_t> TimedProgress::seconds_now{0};

TEST_F(TimedProgress, ShowsStepsAndTakesTheTimeLeftFromThem) {
  const std::string text = captured([] {
    Progress progress("values", 500, "requests");
    progress.measure_by("step", 200);
    seconds_now += 10;
    progress.advance_pieces(8);  // less than a twentieth, but ten seconds went by
    seconds_now += 10;
    progress.advance_pieces(12);
    seconds_now += 20;
    progress.advance_pieces(80);
    progress.advance(100);
  });
  EXPECT_EQ(text,
            "values  0/500 requests  step 8/200  4 min 0 s left\n"
            "values  0/500 requests  step 20/200  3 min 0 s left\n"
            "values  0/500 requests  step 100/200  33 s left\n"
            "values  100/500 requests  in 40.0 s  2.5/s\n");
}

TEST_F(TimedProgress, LeavesStepsOfAnEarlierRunOut) {
  const std::string text = captured([] {
    Progress progress("values", 500, "requests");
    progress.measure_by("step", 200);
    progress.expect_pieces(-100);
    progress.skip(250);
    seconds_now += 20;
    progress.advance_pieces(50);
  });
  EXPECT_EQ(text.substr(0, text.find('\n')), "values  250/500 requests  step 50/100  20 s left");
}

/// "1 min 5 s left" in a line of progress, in seconds.
std::optional<double> seconds_left(const std::string& line) {
  std::smatch match;
  if (!std::regex_search(line, match, std::regex("(?:([0-9]+) min )?([0-9]+) s left"))) return std::nullopt;
  return (match[1].matched ? 60.0 * std::stod(match[1]) : 0.0) + std::stod(match[2]);
}

/// Ten batches of forty steps at most, of a second each. Requests are done at a batch's end, when no step is left that
/// would change them: after 26. By requests alone the first estimate comes after a batch, and is off by its length.
TEST_F(TimedProgress, EstimatesTheTimeLeftFromTheFirstStepsOn) {
  constexpr int64_t kBatches = 10, kMostSteps = 40, kSteps = 26;
  const std::string text = captured([] {
    Progress progress("values", kBatches * 50, "requests");
    progress.measure_by("step", kBatches * kMostSteps);
    for (int64_t batch = 0; batch < kBatches; ++batch) {
      for (int64_t step = 1; step <= kSteps; ++step) {
        seconds_now += 1;
        progress.advance_pieces();
      }
      progress.advance_pieces(kMostSteps - kSteps);
      progress.advance(50);
    }
  });
  std::istringstream lines(text);
  int64_t elapsed = 0, estimates = 0;
  for (std::string line; std::getline(lines, line) && line.find("  in ") == std::string::npos;) {
    elapsed += 10;
    const auto left = static_cast<double>(kBatches * kSteps - elapsed);
    const std::optional<double> said = seconds_left(line);
    if (left < 20) continue;
    ASSERT_TRUE(said.has_value()) << line;
    ++estimates;
    EXPECT_GT(*said, left / 1.6) << line;
    EXPECT_LT(*said, left * 1.6) << line;
  }
  EXPECT_GE(estimates, 20);
}

/// 20 requests together, of which half are over after 8 of 25 steps and the others after 16: the requests' own estimate
/// of what is left comes in place of the steps'.
TEST_F(TimedProgress, TakesTheTimeLeftFromAnEstimateOfItsOwn) {
  StepsAhead steps(20, 25);
  const std::string text = captured([&] {
    Progress progress("values", 20, "requests");
    progress.measure_by("step", 25);
    progress.estimate_by([&] { return steps.work(); });
    for (int64_t step = 1; step <= 16; ++step) {
      const int64_t first = step <= 8 ? 0 : 10, over = step == 8 ? 10 : step == 16 ? 20 : first;
      for (int64_t i = first; i < 20; ++i) steps.step(i);
      for (int64_t i = first; i < over; ++i) steps.end(i);
      seconds_now += step <= 8 ? 10 : 5;  // half of the requests take half of the time
      progress.advance_pieces();
      progress.advance(over - first);
    }
  });
  std::istringstream lines(text);
  std::vector<double> said;
  for (std::string line; std::getline(lines, line);)
    if (const std::optional<double> left = seconds_left(line)) said.push_back(*left);
  ASSERT_GE(said.size(), 10U) << text;
  EXPECT_EQ(said.front(), 240) << "nobody was over yet";
  // after 8 steps and 80 s, 40 s are left; by steps alone it would be 170 s
  EXPECT_LT(said[8], 100) << text;
  EXPECT_NE(text.find("values  10/20 requests  step 10/25"), std::string::npos) << text;
}

TEST(Progress, ShowsNoControlCharacterOfAFileOrAModel) {
  const std::string text = captured([] {
    log_warning("request '\x1b[2J\x1b]0;owned\x07': too long");
    Progress("values \x1b[31m", 2, "requests").finish();
  });
  EXPECT_EQ(
      masked(text),
      "warning: request '\\u001b[2J\\u001b]0;owned\\u0007': too long\nvalues \\u001b[31m  0/2 requests  in # ms\n");
}

TEST(Progress, MakesRoomForALogLine) {
  if (!terminals_exist()) GTEST_SKIP() << "no pseudo-terminal here";
  const std::string text = captured_on_terminal(80, [] {
    Progress progress("values", 4, "requests");
    log_line("a line");
  });
  EXPECT_EQ(text.find("\r\x1b[Kvalues  0/4 requests\r\x1b[Ka line\r\nvalues  0/4 requests  in "), 0U) << text;
}

TEST(Progress, NeverWrapsOnANarrowTerminal) {
  if (!terminals_exist()) GTEST_SKIP() << "no pseudo-terminal here";
  const std::string text = captured_on_terminal(20, [] {
    Progress progress("a stage with a long name", 4, "requests");
    log_line("x");
  });
  EXPECT_EQ(text.find("\r\x1b[Ka stage with a l...\r\x1b[Kx\r\n"), 0U) << text;
}

TEST(CountProgress, CountsWhatProgressAndOthersDo) {
  const int64_t before = reporter().steps();
  count_progress();
  EXPECT_EQ(reporter().steps(), before + 1);
  captured([] { Progress("values", 2, "requests").advance(); });
  EXPECT_GE(reporter().steps(), before + 3);  // its beginning and its step
}

TEST(LogError, SaysWhichProcessSpeaks) {
  EXPECT_EQ(captured([] { log_error("no such file"); }), "lancet: error: no such file\n");
  stderr_reporter().set_error_prefix("lancet (rank 2): error: ");
  const QuietWhileAlive quiet;
  EXPECT_EQ(captured([] { log_error("no such file"); }), "lancet (rank 2): error: no such file\n");
  stderr_reporter().set_error_prefix("lancet: error: ");
}

}  // namespace
}  // namespace lancet
