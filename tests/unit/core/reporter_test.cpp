#include "lancet/core/reporter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/parallel.h"
#include "lancet/core/progress.h"

namespace lancet {
namespace {

class Kept final : public Reporter {
 public:
  explicit Kept(ProgressStyle style = ProgressStyle::kLive) : style_(style) {}
  ProgressStyle progress_style() const override { return style_; }

  std::vector<std::string> told;

 protected:
  void on_log(LogLevel level, std::string_view text) override {
    told.push_back(std::string(level == LogLevel::kInfo      ? "info "
                               : level == LogLevel::kWarning ? "warning "
                                                             : "error ") +
                   std::string(text));
  }
  void on_progress(const StageProgress& now) override {
    told.push_back(now.stage + " " + std::to_string(now.done) + "/" + std::to_string(now.total) +
                   (now.is_finished ? " end" : ""));
  }

 private:
  ProgressStyle style_;
};

TEST(Reporter, IsThisThreadsUntilItsScopeEnds) {
  Kept outer, inner;
  EXPECT_EQ(&reporter(), &stderr_reporter());
  {
    const ReporterScope one(outer);
    log_line("a");
    {
      const ReporterScope other(inner);
      log_warning("b");
    }
    log_error("c");
    std::jthread([] { EXPECT_EQ(&reporter(), &stderr_reporter()); }).join();
  }
  EXPECT_EQ(&reporter(), &stderr_reporter());
  EXPECT_EQ(outer.told, (std::vector<std::string>{"info a", "error c"}));
  EXPECT_EQ(inner.told, std::vector<std::string>{"warning b"});
}

TEST(Reporter, GoesAlongWithWorkOfSeveralThreads) {
  Kept kept;
  const ReporterScope scope(kept);
  std::atomic<int> others{0};
  for_each_in_parallel(64, 4, [&](size_t) {
    others += &reporter() == &kept ? 0 : 1;
    count_progress();
  });
  EXPECT_EQ(others, 0);
  EXPECT_EQ(kept.steps(), 64);
}

TEST(Reporter, IsToldOfAStageAsItBeginsAndAsItEnds) {
  Kept live, lines(ProgressStyle::kLines), none(ProgressStyle::kNone);
  for (Kept* kept : {&live, &lines, &none}) {
    const ReporterScope scope(*kept);
    Progress progress("values", 2, "requests");
    progress.advance(2);
  }
  EXPECT_EQ(live.told, (std::vector<std::string>{"values 0/2", "values 2/2 end"}));
  EXPECT_EQ(lines.told, std::vector<std::string>{"values 2/2 end"});
  EXPECT_TRUE(none.told.empty());
  EXPECT_EQ(none.steps(), live.steps());
}

TEST(Reporter, EndsWorkThatIsCancelledAtItsNextStep) {
  Kept kept;
  const ReporterScope scope(kept);
  Progress progress("values", 100, "requests");
  progress.advance();
  std::jthread([&] { kept.cancel(); }).join();
  EXPECT_THROW(progress.advance(), Cancelled);
  EXPECT_THROW(count_progress(), Cancelled);
  EXPECT_THROW(for_each_in_parallel(8, 2, [](size_t) { count_progress(); }), Cancelled);
  EXPECT_THROW(Progress("weights", 1, "layers"), Cancelled);
  log_line("still told");
  kept.resume();
  EXPECT_NO_THROW(progress.advance());
  EXPECT_EQ(Cancelled().exit_code(), ExitCode::kCancelled);
}

/// Goes after whatever is made while the program runs: made before main().
class LastWords {
 public:
  ~LastWords() {
    if (are_wanted) stderr_reporter().log(LogLevel::kError, "at the very end");
  }
  bool are_wanted = false;
};
LastWords last_words;

/// As the thread does that waits for signals, where one comes while main() is over.
TEST(ReporterDeathTest, OfTheProcessIsThereUntilItsEnd) {
  const auto end = [] {
    last_words.are_wanted = true;
    stderr_reporter().log(LogLevel::kError, "at work");
    std::exit(0);
  };
  EXPECT_EXIT(end(), ::testing::ExitedWithCode(0), "at the very end");
}

TEST(Reporter, OfOneIsNotCancelledWithAnother) {
  Kept one, other;
  one.cancel();
  const ReporterScope scope(other);
  EXPECT_NO_THROW(count_progress());
}

}  // namespace
}  // namespace lancet
