// What judges are asked, what is made of what they say, and what becomes of those that say nothing.
#include "lancet/judge/answer_judge.h"

#include <gtest/gtest.h>

#include <deque>
#include <fstream>

#include "lancet/core/error.h"
#include "lancet/http/http_client.h"
#include "support/core_support.h"
#include "support/temp_dir.h"

namespace lancet {
namespace {

using testing::config_error;

TEST(Verdicts, AreTheFirstWordAfterThoughts) {
  const std::pair<const char*, JudgeVerdict> cases[] = {{"yes", JudgeVerdict::kYes},
                                                        {"No.", JudgeVerdict::kNo},
                                                        {" **YES**, it does", JudgeVerdict::kYes},
                                                        {"no, since it says yes", JudgeVerdict::kNo},
                                                        {"<think>yes, or no?</think>\n\nno", JudgeVerdict::kNo},
                                                        {"<think>yes", JudgeVerdict::kUnclear},
                                                        {"not sure", JudgeVerdict::kUnclear},
                                                        {"yesterday", JudgeVerdict::kUnclear},
                                                        {"", JudgeVerdict::kUnclear},
                                                        {"1", JudgeVerdict::kUnclear}};
  for (const auto& [words, verdict] : cases) EXPECT_EQ(verdict_in(words), verdict) << words;
}

TEST(JudgePrompts, FillEachPlaceOnce) {
  const JudgePrompt prompt("{prompt}|{answer}|{target}|{aliases}|{answer}|{other", "p");
  EXPECT_EQ(prompt.fill({"a {target}", "{prompt}", "t{answer}", {}}),
            "a {target}|{prompt}|t{answer}|(none are known)|{prompt}|{other");
  EXPECT_EQ(prompt.fill({"a", "b", "c", {"d", "e"}}), "a|b|c|d, e|b|{other");
  EXPECT_EQ(config_error([] { JudgePrompt("Is it {target}?", "p.txt"); }),
            "p.txt: expected text with {target} and {answer}, got none with {answer}");
}

/// Says these words, one a question; "!" is no answer.
class Script final : public JudgeLine {
 public:
  explicit Script(std::deque<std::string> words) : words_(std::move(words)) {}
  std::string ask(const JudgedAnswer& judged, const std::string& /*question*/) override {
    asked.push_back(judged.answer);
    if (words_.empty()) throw std::logic_error("nothing is left to say");
    const std::string word = words_.front();
    words_.pop_front();
    if (word == "!") throw ServerError("somewhere: fell silent");
    return word;
  }
  std::vector<std::string> asked;

 private:
  std::deque<std::string> words_;
};

struct Scripted {
  explicit Scripted(std::deque<std::string> words, const JudgeOptions& options = {.command = {"script"}}) {
    auto line = std::make_unique<Script>(std::move(words));
    script = line.get();
    judge = std::make_unique<AnswerJudge>(options, std::move(line));
  }
  std::vector<JudgeVerdict> of(const std::vector<std::string>& answers) const {
    std::vector<JudgedAnswer> judged;
    for (const std::string& answer : answers) judged.push_back({"p", answer, "t", {}});
    return judge->judge(judged);
  }
  std::unique_ptr<AnswerJudge> judge;
  Script* script = nullptr;
};

constexpr JudgeVerdict kYes = JudgeVerdict::kYes, kNo = JudgeVerdict::kNo, kUnclear = JudgeVerdict::kUnclear;

TEST(Judges, JudgeNothingTwice) {
  const JudgeOptions options{.command = {"script"}};
  const Scripted scripted({"yes", "perhaps", "no"}, options);
  EXPECT_EQ(scripted.of({"a", "b", "a"}), (std::vector{kYes, kUnclear, kYes}));
  EXPECT_EQ(scripted.of({"b", "c", "a"}), (std::vector{kUnclear, kNo, kYes}));
  EXPECT_EQ(scripted.script->asked, (std::vector<std::string>{"a", "b", "c"}));
  const Scripted another({}, options);  // of the same job
  EXPECT_EQ(another.of({"c", "b"}), (std::vector{kNo, kUnclear}));
}

TEST(Judges, ThatNeverAnsweredEndTheWork) {
  const Scripted scripted({"!", "!", "yes"});
  try {
    scripted.of({"a", "b"});
    FAIL();
  } catch (const ServerError& error) {
    EXPECT_STREQ(error.what(), "evaluate.judge: somewhere: fell silent: expected an answer, yes or no");
  }
}

TEST(Judges, ThatFallSilentAreAskedAgainAndThenUnclear) {
  const Scripted scripted({"!", "yes", "!", "!", "no", "!", "!", "!", "!", "!", "!"});
  EXPECT_EQ(scripted.of({"a", "b", "c", "d", "e", "f", "g", "h"}),
            (std::vector{kYes, kUnclear, kNo, kUnclear, kUnclear, kUnclear, kUnclear, kUnclear}));
  EXPECT_EQ(scripted.script->asked, (std::vector<std::string>{"a", "a", "b", "b", "c", "d", "d", "e", "e", "f", "f"}));
}

JudgeOptions of_shell(const std::string& script, int64_t seconds = 20) {
  return {.command = {"sh", "-c", script}, .seconds = seconds};
}

std::vector<JudgeVerdict> judged_by(const JudgeOptions& options, const std::vector<std::string>& answers) {
  std::vector<JudgedAnswer> judged;
  for (const std::string& answer : answers) judged.push_back({"Where \"is\" it?", answer, "Rome", {}});
  return AnswerJudge(options).judge(judged);
}

std::string refusal_of(const JudgeOptions& options) {
  try {
    judged_by(options, {"x"});
  } catch (const ServerError& error) {
    return error.what();
  }
  return "none";
}

TEST(JudgePrograms, GetALineOfJsonAndGiveALineBack) {
  const testing::TempDir folder;
  const std::string seen = (folder / "seen").string();
  const JudgeOptions options =
      of_shell("while read -r line; do printf '%s\\n' \"$line\" >> " + seen +
               "; case \"$line\" in *'\"answer\":\"in Rome'*) echo yes;; *) echo No, not;; esac; done");
  EXPECT_EQ(judged_by(options, {"in Rome", "in Oslo", "in Rome\nand \xff"}), (std::vector{kYes, kNo, kYes}));
  std::ifstream lines(seen);
  std::string first;
  std::getline(lines, first);
  EXPECT_TRUE(first.starts_with(R"({"aliases":[],"answer":"in Rome","prompt":"Where \"is\" it?","question":")"))
      << first;
  EXPECT_TRUE(first.ends_with(R"(","target":"Rome"})")) << first;
}

TEST(JudgePrograms, ThatDoNotAnswerAreTold) {
  EXPECT_EQ(
      refusal_of({.command = {"/no/such/judge"}}),
      "evaluate.judge: '/no/such/judge' cannot be started: No such file or directory: expected an answer, yes or no");
  EXPECT_NE(refusal_of(of_shell("exit 3")).find("ended before it answered"), std::string::npos);
  EXPECT_NE(refusal_of(of_shell("exec sleep 30", 1)).find("timed out: gave no line back"), std::string::npos);
}

TEST(JudgePrograms, ThatWriteMoreThanALineForAQuestionAreRefused) {
  for (const char* program : {"read -r line; printf 'log\\nyes\\n'; sleep 30",                      // two at once
                              "while read -r line; do echo yes; echo no; sleep 0.1; done",          // a second late
                              "echo loading; while read -r line; do sleep 0.1; echo yes; done"}) {  // a greeting
    const std::string refusal = config_error([&] { judged_by(of_shell(program), {"a", "b", "c", "d"}); });
    EXPECT_NE(refusal.find("got more than a line"), std::string::npos) << program << ": " << refusal;
  }
}

TEST(JudgePrograms, ThatSayNeitherYesNorNoAreTold) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(judged_by(of_shell("while read -r line; do echo '{}'; done"), {"a", "b"}),
            (std::vector{kUnclear, kUnclear}));
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("2 answers of 2 got neither yes nor no"), std::string::npos) << told;
  EXPECT_NE(told.find("got '{}' first"), std::string::npos) << told;
}

TEST(JudgePrograms, StartAgainAfterTheyEnded) {
  EXPECT_EQ(judged_by(of_shell("read -r line; echo yes"), {"a", "b", "c"}), (std::vector{kYes, kYes, kYes}));
}

TEST(JudgeServers, AreOnThisMachineUnlessTheJobSaysOtherwise) {
  for (const char* url : {"http://127.0.0.1:1/v1", "http://localhost:1/v1", "http://[::1]:1/v1"})
    EXPECT_NO_THROW(AnswerJudge({.url = url, .model = "m"})) << url;
  JudgeOptions options{.url = "http://judge.example/v1", .model = "m"};
  EXPECT_EQ(config_error([&] { AnswerJudge judge(options); }),
            "evaluate.judge.url: http://judge.example/v1: expected a server on this machine (127.0.0.1, localhost), "
            "because it reads prompts, targets and answers; remote: true allows another");
  EXPECT_THROW(AnswerJudge({.url = "http://127.judge.example/v1", .model = "m"}), ConfigError);
  options.may_be_remote = true;
  EXPECT_NO_THROW(AnswerJudge{options});
}

}  // namespace
}  // namespace lancet
