// What the first edit of a session says of its statistics, and when.
#include <gtest/gtest.h>

#include <algorithm>

#include "session_jobs.h"

namespace lancet {
namespace {

/// Everything that is said, in order.
class ToldInOrder final : public Reporter {
 public:
  std::vector<std::string> take() { return std::exchange(told_, {}); }

 protected:
  void on_log(LogLevel, std::string_view text) override { told_.emplace_back(text); }
  void on_progress(const StageProgress& progress) override { told_.push_back(progress.line); }

 private:
  std::vector<std::string> told_;
};

class FirstEdits : public testing::Sessions {
 protected:
  CompletedJob with_text(const std::string& statistics) const {
    const std::string text =
        cat("{model: ", tiny_.folder.path().string(), ", editor: ", testing::kMemit, ", statistics: {", statistics,
            ", cache: cache, ridge: 1e-3}, evaluate: [efficacy], ", "run: {dtype: f64, seed: 3}}");
    return complete_job(parse_config(text, "test"), {folder_.path(), "test"}, {}, EditorChoice::kNamed);
  }
  /// Returns where the part stands first; the end where it does not.
  static size_t place_of(const std::vector<std::string>& told, const std::string& part) {
    return static_cast<size_t>(
        std::ranges::find_if(told, [&](const std::string& line) { return line.find(part) != std::string::npos; }) -
        told.begin());
  }
};

TEST_F(FirstEdits, SayWhatTheirStatisticsTakeBeforeTheyAreBegun) {
  ToldInOrder told;
  const CompletedJob job = with_text("corpus: self, tokens: 400, document_tokens: 64");
  Session session(job, told);
  told.take();
  session.edit(some(0, 2));
  const std::vector<std::string> first = told.take();
  const size_t beforehand = place_of(
      first, cat("statistics  not in the cache yet: the model writes 400 tokens of text, 7 documents at a time, in at ",
                 "least 58 passes, and one pass over them for 2 layers; this happens once, later edits find them in ",
                 (folder_ / "cache").string()));
  ASSERT_LT(beforehand, first.size());
  EXPECT_LT(beforehand, place_of(first, "sampling  0/400 tokens"));
  EXPECT_EQ(place_of(first, ", about "), first.size()) << "nothing is promised before it is measured";
  for (const char* stage : {"sampling  ", "statistics  0/400 tokens"}) {
    ASSERT_LT(place_of(first, stage), first.size()) << stage;
    EXPECT_NE(first[place_of(first, stage)].find("once, then cached"), std::string::npos) << stage;
  }
  session.edit(some(2, 4));
  Session another(job, told);
  another.edit(some(0, 2));
  const std::vector<std::string> later = told.take();
  for (const char* part : {"not in the cache yet", "sampling", "once, then cached"})
    EXPECT_EQ(place_of(later, part), later.size()) << later[place_of(later, part)];
}

TEST_F(FirstEdits, SayHowMuchOfACorpusIsRead) {
  ToldInOrder told;
  Session session(with_text("corpus: corpus.txt, tokens: 500"), told);
  session.edit(some(0, 2));
  const std::vector<std::string> first = told.take();
  const size_t beforehand = place_of(first, "not in the cache yet: one pass over 500 tokens of text for 2 layers");
  ASSERT_LT(beforehand, first.size());
  EXPECT_LT(beforehand, place_of(first, "statistics  0/500 tokens"));
}

}  // namespace
}  // namespace lancet
