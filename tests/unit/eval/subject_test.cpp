// What is asked about an edited subject besides the edited fact, and what is made of the answers. The figures on a
// model: tests/golden/metrics_golden_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "lancet/core/strings.h"
#include "lancet/eval/evaluate.h"
#include "lancet/io/files.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::some_requests;
using testing::TinyModel;

class Subject : public ::testing::Test {
 protected:
  void ask(const EvaluationOptions& options = {.protocols = {"subject"}}) {
    protocol_ = find_protocol_of("subject_kept")->make(options);
    protocol_->see(requests_);
    TextLimit limit(tiny_.config.max_positions);
    for (const EditRequest& request : requests_) {
      questions_.begin_request();
      QuestionCollector collector(*tiny_.tokenizer, questions_, limit, "request");
      protocol_->ask(request, collector);
    }
  }

  /// All answers with one next token and one text.
  ModelAnswers answers(TokenId next, const std::string& text) const {
    ModelAnswers all;
    all.scores.assign(questions_.continuations().size(), TargetAnswer{.nll = 1, .argmax = {next}});
    all.texts.assign(questions_.texts().size(), GeneratedText{"", text, false});
    return all;
  }

  /// The prompts of next tokens, of the first request.
  std::vector<std::string> asked_prompts() const {
    std::vector<std::string> prompts;
    for (const SubjectAnswer& answer : protocol_->subject_answers(0, answers(5, "x")))
      if (answer.asked == AskedFor::kNextToken) prompts.push_back(answer.prompt);
    return prompts;
  }

  TinyModel tiny_;
  std::vector<EditRequest> requests_ = some_requests(2);
  ModelQuestions questions_;
  std::unique_ptr<Protocol> protocol_;
};

TEST_F(Subject, IsAskedAboutInGeneralWhereARecordHasNoPrompts) {
  ask();
  const std::string& subject = requests_[0].subject;
  EXPECT_EQ(asked_prompts(), (std::vector<std::string>{subject + " is known for", subject + " has", subject + " was",
                                                       "What is " + subject + "? It is"}));
  for (const std::string& prompt : asked_prompts()) {
    const std::vector<TokenId> ids = tiny_.tokenizer->ids(prompt);
    EXPECT_TRUE(std::ranges::any_of(questions_.continuations(), [&](const Continuation& one) {
      return one.prompt == ids && one.target.size() == 1;
    })) << prompt;
  }
  ASSERT_FALSE(questions_.texts().empty());
  EXPECT_EQ(questions_.texts()[0].prompt, tiny_.tokenizer->ids(subject + " is"));
}

TEST_F(Subject, IsAskedAboutByTheRecordsOwnPrompts) {
  const std::string& subject = requests_[0].subject;
  requests_[0].locality = {{"nq", {{"Who wrote it", {"Nobody"}}, {subject + " lives in", {"Rome"}}}},
                           {"other", {{"The home of " + subject + " is", {"Rome"}}, {subject + "ville is", {"a"}}}}};
  ask();
  EXPECT_EQ(asked_prompts(), (std::vector<std::string>{subject + " lives in", "The home of " + subject + " is"}))
      << "those that name the subject as a whole word";
}

TEST_F(Subject, IsNeverAskedWhatIsEdited) {
  const std::string subject = requests_[0].subject;
  requests_[0].paraphrases = {subject + " has "};
  requests_[1].prompt.text = subject + " was";  // another request about it
  requests_[1].paraphrases = {subject + " is"};
  ask();
  EXPECT_EQ(asked_prompts(), (std::vector<std::string>{subject + " is known for", "What is " + subject + "? It is"}));
  EXPECT_TRUE(std::ranges::none_of(protocol_->subject_answers(0, answers(5, "x")), [](const SubjectAnswer& answer) {
    return answer.asked == AskedFor::kText;
  })) << "its text would be the new target";
}

TEST_F(Subject, WithoutANameIsNotAskedAbout) {
  for (EditRequest& request : requests_) request.subject.clear();
  ask();
  EXPECT_TRUE(questions_.continuations().empty());
  EXPECT_TRUE(questions_.texts().empty());
  EXPECT_TRUE(protocol_->judge(0, answers(5, "x"), answers(6, "x")).empty());
}

TEST_F(Subject, IsKeptWhereTheNextTokenIsTheSame) {
  ask();
  const ModelAnswers before = answers(5, "x");
  ModelAnswers now = before;
  now.scores[0]->argmax = {6};
  now.scores[2]->argmax = {6};
  const Tally kept = protocol_->judge(0, now, before).at("subject_kept");
  EXPECT_EQ(kept.sum, 2);
  EXPECT_EQ(kept.count, 4);
  EXPECT_EQ(protocol_->judge(1, now, before).at("subject_kept").mean(), 1) << "the other subject's answers stayed";
  EXPECT_TRUE(protocol_->judge(0, now, now).empty()) << "a model agrees with itself: that says nothing";
}

TEST_F(Subject, LeaksWhereTheTargetIsWrittenAndWasNot) {
  requests_[0].target_aliases = {"Roma"};
  ask();
  const std::string& target = requests_[0].target;
  const auto leak = [&](const std::string& was, const std::string& is) {
    return protocol_->judge(0, answers(5, is), answers(5, was)).at("subject_leak").mean();
  };
  EXPECT_EQ(leak("a town", "the " + target + " of old"), 1);
  EXPECT_EQ(leak("a town", "near Roma"), 1);
  EXPECT_EQ(leak("a town", "a city"), 0);
  const Tallies known = protocol_->judge(0, answers(5, target), answers(5, "in " + target));
  EXPECT_FALSE(known.contains("subject_leak")) << "it was written before";
}

TEST_F(Subject, IsAskedAboutInAChatWhereTheModelHasATemplate) {
  ask({.protocols = {"subject"}, .chat_template = {.model = {}, .by_hand = "USER: {} ASSISTANT:"}});
  const std::string& subject = requests_[0].subject;
  const std::string turn = cat("USER: Tell me about ", subject, ". ASSISTANT:");
  const std::vector<TokenId> ids = tiny_.tokenizer->ids(cat(turn, " ", subject, " has"));
  EXPECT_TRUE(std::ranges::any_of(questions_.continuations(), [&](const Continuation& one) {
    return one.prompt == ids;
  })) << "the prompt begins the answer";
  std::vector<AskedFor> asked;
  for (const SubjectAnswer& answer : protocol_->subject_answers(0, answers(5, "x"))) asked.push_back(answer.asked);
  EXPECT_EQ(asked,
            (std::vector<AskedFor>{AskedFor::kText, AskedFor::kChatText, AskedFor::kNextToken, AskedFor::kNextToken,
                                   AskedFor::kNextToken, AskedFor::kNextToken, AskedFor::kChatNextToken,
                                   AskedFor::kChatNextToken, AskedFor::kChatNextToken, AskedFor::kChatNextToken}));
  EXPECT_EQ(protocol_->judge(0, answers(5, "x"), answers(6, "x")).at("subject_kept").count, 8);
}

TEST_F(Subject, IsAskedAboutInPlainTextWhereTheTemplateCannotBeRead) {
  const testing::TempDir folder;
  write_text_file(folder / "config.json", "{}");
  for (const std::filesystem::path& model : {tiny_.folder.path(), folder.path(), folder / "absent"}) {
    questions_ = {};
    ask({.protocols = {"subject"}, .chat_template = {.model = model, .by_hand = {}}});
    EXPECT_EQ(asked_prompts().size(), 4u);
    EXPECT_EQ(protocol_->metrics()[0].protocol.find("template:"), std::string::npos);
  }
}

TEST_F(Subject, IsMeasuredAlongBothModelsOfAPlan) {
  const EvaluationPlan plan(*tiny_.tokenizer, requests_, {.protocols = {"subject"}}, tiny_.config.max_positions);
  const Evaluation before = plan.run(tiny_.load(), "before", alone());
  EXPECT_FALSE(before.totals.at("subject_kept").mean());
  ASSERT_EQ(before.subject_answers.size(), 2u);
  const Evaluation same = plan.run(tiny_.load(), "after", alone(), &before);
  EXPECT_EQ(same.totals.at("subject_kept").mean(), 1);
  EXPECT_EQ(same.totals.at("subject_kept").count, 8);
  const Evaluation other = plan.run(TinyModel({.seed = 7}).load(), "after", alone(), &before);
  EXPECT_LT(*other.totals.at("subject_kept").mean(), 1);
  size_t n_same = 0;
  for (size_t i = 0; i < 2; ++i)
    for (size_t at = 1; at < 5; ++at)
      n_same += other.subject_answers[i][at].text == before.subject_answers[i][at].text ? 1 : 0;
  EXPECT_EQ(other.totals.at("subject_kept").sum, static_cast<double>(n_same)) << "what is shown is what is counted";
  const Evaluation part = plan.scores_of(std::array<int64_t, 1>{1}).run(tiny_.load(), "part", alone(), &before);
  EXPECT_EQ(part.totals.at("subject_kept").count, 4) << "next tokens are measured between batches too";
  EXPECT_EQ(part.totals.at("subject_leak").count, 0);
}

TEST(SubjectProtocol, LeavesOutWhatDoesNotFitTheModel) {
  const TinyModel tiny;
  std::string long_prompt = "word";
  while (tiny.tokenizer->ids(long_prompt).size() < 121) long_prompt += " word";
  std::vector<EditRequest> requests = some_requests(2);
  requests[1].locality = {{"s", {{long_prompt + " " + requests[1].subject, {"a"}}}}};
  const EvaluationOptions options{.protocols = {"subject"}};
  const EvaluationPlan all(*tiny.tokenizer, requests, options, 400), some(*tiny.tokenizer, requests, options, 120);
  EXPECT_EQ(all.questions().continuations().size(), some.questions().continuations().size() + 1);
  EXPECT_NO_THROW(EvaluationPlan(*tiny.tokenizer, requests, options, 2));
}

TEST(SubjectProtocol, IsLeftOutWhereNothingIsComparedWith) {
  EXPECT_EQ(without_comparing({"efficacy", "subject", "easyedit"}), (std::vector<std::string>{"efficacy", "easyedit"}));
}

}  // namespace
}  // namespace lancet
