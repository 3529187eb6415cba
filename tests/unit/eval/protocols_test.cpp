// What holds of the published protocols whatever the model knows; their figures: tests/golden/metrics_golden_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/eval/evaluate.h"
#include "lancet/io/files.h"
#include "lancet/text/prompt.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::some_requests;
using testing::TinyModel;

const std::vector<std::string> kPublished{"counterfact", "zsre", "easyedit", "mquake", "ultraedit"};

/// Requests with every part that a protocol asks for.
std::vector<EditRequest> full_requests() {
  std::vector<EditRequest> requests = some_requests(3);
  for (EditRequest& request : requests) {
    request.paraphrases = {"Someone from", "Many people say that"};
    request.neighborhood = {"Tina Arena lives in"};
    request.locality = {{"nq", {{"Who wrote it", {"Nobody"}}, {"Left out", {}}}}};
    request.portability = {{"Reasoning", {{"The capital of the country is", {"Rome", "Roma"}}}}};
    request.multihop = {{"Where is it", {"Rome"}}, {"In which city is it", {"Rome"}}};
    request.generation_prompts = {request.subject + " is"};
    request.relation = "P1";
    request.target_id = "Q" + request.id;
  }
  return requests;
}

TEST(PublishedProtocols, SayOfEachMetricWhetherItIsAShare) {
  const testing::TempDir folder;
  write_text_file(folder / "snippets.json", "[]");
  for (const ProtocolRow& row : protocol_table()) {
    EvaluationOptions options;
    options.counterfact.snippets = folder / "snippets.json";
    options.chat_template.by_hand = "USER: {}";
    options.judge = JudgeOptions{.command = {"true"}};
    write_text_file(folder / "examples.txt", "Q: Who wrote it? A: Nobody");
    options.multihop_examples = folder / "examples.txt";
    const auto protocol = row.make(options);
    for (const MetricRow& metric : protocol->metrics()) {
      EXPECT_EQ(find_protocol_of(metric.name), &row) << metric.name;
      EXPECT_EQ(metric.group, row.name);
      const bool is_listed = std::find(row.no_shares.begin(), row.no_shares.end(), metric.name) != row.no_shares.end();
      EXPECT_EQ(is_listed, metric.unit != Unit::kShare) << metric.name;
    }
    for (const std::string_view name : row.no_shares)
      EXPECT_NE(std::find(row.metrics.begin(), row.metrics.end(), name), row.metrics.end()) << name;
  }
}

/// Three edits of an instruct model that thinks: the new answer after a thought of the old one, the old answer, and a
/// thought without an end.
TEST(Thinking, IsJudgedByTheAnswerAfterIt) {
  const TinyModel tiny;
  const ProtocolRow* row = find_protocol_of("thinking_exact");
  const auto protocol = row->make({.protocols = {"thinking"}, .chat_template = {.model = {}, .by_hand = "USER: {}"}});
  ModelQuestions questions;
  TextLimit limit(tiny.config.max_positions);
  const std::vector<EditRequest> requests = full_requests();
  for (const EditRequest& request : requests) {
    QuestionCollector collector(*tiny.tokenizer, questions, limit, "request");
    protocol->ask(request, collector);
  }
  ASSERT_EQ(questions.texts().size(), requests.size());
  EXPECT_EQ(questions.texts()[0].max_new_tokens, 512);
  const std::string target = requests[0].target, old = *requests[0].target_true;
  const auto judge = [&](const std::string& continuation) {
    ModelAnswers answers;
    answers.texts.assign(requests.size(), GeneratedText{"", continuation, true});
    std::map<std::string, double> shares;
    for (const auto& [name, tally] : protocol->judge(0, answers, answers)) shares[name] = *tally.mean();
    return shares;
  };
  std::map<std::string, double> said = judge("It was " + old + " once.</think>\n\n" + target + ".");
  EXPECT_EQ(said.at("thinking_exact"), 1);
  EXPECT_EQ(said.at("thinking_old"), 1) << "the thought holds it";
  EXPECT_EQ(said.at("thinking_ended"), 1);
  said = judge("Now it is " + target + ".</think> " + old);
  EXPECT_EQ(said.at("thinking_contains"), 0) << "a thought is no answer";
  EXPECT_EQ(said.at("thinking_old"), 1);
  said = judge(target);
  EXPECT_EQ(said.at("thinking_exact"), 0) << "the thought has no end";
  EXPECT_EQ(said.at("thinking_old"), 0);
  EXPECT_EQ(said.at("thinking_ended"), 0);
}

class PublishedProtocolsOn : public ::testing::Test {
 protected:
  TinyModel tiny_;
  CausalLM model_ = tiny_.load();
  std::vector<EditRequest> requests_ = full_requests();

  EvaluationPlan plan(CounterFactFiles files = {}) const {
    return {*tiny_.tokenizer,
            requests_,
            {.protocols = kPublished, .counterfact = std::move(files)},
            tiny_.config.max_positions};
  }
  std::optional<double> total(const Evaluation& evaluation, const std::string& name) const {
    return evaluation.totals.at(name).mean();
  }
};

TEST_F(PublishedProtocolsOn, AModelAgreesWithItself) {
  const Evaluation evaluation = plan().run(model_, "test", alone());
  EXPECT_EQ(total(evaluation, "easyedit_locality_nq_acc"), 1);
  EXPECT_EQ(total(evaluation, "easyedit_locality_neighborhood_acc"), 1);
  EXPECT_EQ(evaluation.totals.at("easyedit_locality_nq_acc").count, 3);
}

TEST_F(PublishedProtocolsOn, LocalityIsAgreementWithTheUneditedModel) {
  const EvaluationPlan one = plan();
  const Evaluation before = one.run(model_, "test", alone());
  const CausalLM other = TinyModel({.seed = 7}).load();
  const Evaluation after = one.run(other, "test", alone(), &before);
  // every request asks the same question, once
  const std::vector<Continuation> question{
      {tiny_.tokenizer->ids("Who wrote it"),
       continue_prompt(*tiny_.tokenizer, "Who wrote it", "Nobody", "test").target}};
  const std::vector<TokenId> mine = score_continuations(model_, question, "test", alone())[0].argmax;
  const std::vector<TokenId> theirs = score_continuations(other, question, "test", alone())[0].argmax;
  Tally agreement;
  for (size_t at = 0; at < mine.size(); ++at) agreement.add(mine[at] == theirs[at] ? 1 : 0);
  EXPECT_DOUBLE_EQ(*total(after, "easyedit_locality_nq_acc"), *agreement.mean());
  EXPECT_LT(*agreement.mean(), 1);
}

TEST_F(PublishedProtocolsOn, WhatARecordLacksIsNotZero) {
  requests_ = some_requests(2);
  for (EditRequest& request : requests_) request.target_true.reset();
  const Evaluation evaluation = plan().run(model_, "test", alone());
  std::set<std::string> known;
  for (const auto& [name, tally] : evaluation.totals)
    if (tally.count > 0) known.insert(name);
  EXPECT_EQ(known, (std::set<std::string>{"counterfact_es_acc", "zsre_efficacy", "easyedit_rewrite_acc",
                                          "easyedit_fluency", "ultraedit_efficacy"}));
  EXPECT_FALSE(evaluation.totals.contains("counterfact_rs"));
  EXPECT_FALSE(evaluation.totals.contains("easyedit_locality_nq_acc"));
}

TEST_F(PublishedProtocolsOn, CounterFactAveragesEachRequestFirst) {
  requests_[0].neighborhood = {"Tina Arena lives in", "A piano is", "Who wrote it", "Where is it"};
  const Evaluation evaluation = plan().run(model_, "test", alone());
  for (const char* name : {"counterfact_es", "counterfact_ps", "counterfact_ns", "counterfact_nm", "zsre_locality"})
    EXPECT_EQ(evaluation.totals.at(name).count, 3) << name;
  EXPECT_EQ(evaluation.totals.at("ultraedit_specificity").count, 4 + 1 + 1 + 3);
  const double es = *total(evaluation, "counterfact_es"), ps = *total(evaluation, "counterfact_ps"),
               ns = *total(evaluation, "counterfact_ns");
  const double score = es * ps * ns == 0 ? 0 : 3 / (1 / es + 1 / ps + 1 / ns);
  EXPECT_DOUBLE_EQ(*total(evaluation, "counterfact_score"), score);
}

TEST_F(PublishedProtocolsOn, TextsHaveAHundredTokensInAll) {
  const Evaluation evaluation = plan().run(model_, "test", alone());
  size_t long_texts = 0;
  for (const std::optional<GeneratedText>& text : evaluation.answers.texts) {
    ASSERT_TRUE(text);
    const size_t tokens = tiny_.tokenizer->ids(text->whole).size();
    long_texts += tokens > 60 ? 1 : 0;  // decoded and encoded again, a text may have fewer
  }
  EXPECT_EQ(long_texts, 6u);  // one for counterfact and one for easyedit of each request
  EXPECT_GT(*total(evaluation, "counterfact_ge"), 0);
  EXPECT_GT(*total(evaluation, "easyedit_fluency"), 0);
}

TEST_F(PublishedProtocolsOn, MultihopIsAnyOfTheQuestions) {
  const Evaluation before = plan().run(model_, "test", alone());
  std::string written;
  for (const std::optional<GeneratedText>& text : before.answers.texts)
    if (text->whole.starts_with("In which city is it")) written = text->continuation;
  ASSERT_NE(written, "");
  requests_[1].multihop[1].answers.push_back(written);
  const Evaluation evaluation = plan().run(model_, "test", alone());
  EXPECT_EQ(evaluation.requests[0].at("mquake_multihop").mean(), 0);
  EXPECT_EQ(evaluation.requests[1].at("mquake_multihop").mean(), 1);
}

TEST_F(PublishedProtocolsOn, MultihopAfterExamplesIsTheWholeAnswer) {
  const testing::TempDir folder;
  write_text_file(folder / "examples.txt", "Q: Who wrote it? A: Nobody\n\n");
  const EvaluationOptions options{.protocols = {"mquake"}, .multihop_examples = folder / "examples.txt"};
  const auto measure = [&] {
    return EvaluationPlan(*tiny_.tokenizer, requests_, options, tiny_.config.max_positions)
        .run(model_, "test", alone());
  };
  const Evaluation before = measure();
  EXPECT_EQ(before.totals.at("mquake_multihop_examples").mean(), 0);
  std::string written;
  for (const std::optional<GeneratedText>& text : before.answers.texts)
    if (text->whole.ends_with(text->continuation) &&
        text->whole.starts_with("Q: Who wrote it? A: Nobody\nQ: In which city is it A:"))
      written = text->continuation;
  ASSERT_NE(written, "");
  requests_[1].multihop[1].answers.push_back(written);
  const Evaluation evaluation = measure();
  EXPECT_EQ(evaluation.requests[0].at("mquake_multihop_examples").mean(), 0);
  EXPECT_EQ(evaluation.requests[1].at("mquake_multihop_examples").mean(), 1);
  EXPECT_FALSE(plan().run(model_, "test", alone()).totals.contains("mquake_multihop_examples"));
}

TEST_F(PublishedProtocolsOn, BadSnippetsAreRefusedByFileAndEntry) {
  const testing::TempDir folder;
  CounterFactFiles files;
  files.snippets = folder / "snippets.json";
  for (const char* text : {"{}", "[{\"relation_id\": \"P1\"}]", "not JSON"}) {
    write_text_file(files.snippets, text);
    try {
      plan(files);
      FAIL() << "expected a ConfigError of " << text;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("snippets.json"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace lancet
