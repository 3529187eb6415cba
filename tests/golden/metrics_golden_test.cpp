// Every evaluation protocol against tests/oracle/golden_metrics.py: each definition, plain and independent, in f64,
// on the demo model and on an edited one.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lancet/core/strings.h"
#include "lancet/eval/evaluate.h"
#include "lancet/io/files.h"
#include "lancet/text_metrics/ngram_entropy.h"
#include "lancet/text_metrics/overlap.h"
#include "lancet/text_metrics/tfidf.h"
#include "lancet/text_metrics/word_tokens.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

constexpr int64_t kPositions = 512;  // of the demo model
constexpr double kError = 1e-9;      // of probabilities and perplexities in f64; shares of matches are exact

std::filesystem::path folder() { return std::filesystem::path(LANCET_BINARY_DIR) / "golden" / "metrics"; }

const Json& golden() {
  static const Json json = Json::parse(read_text_file(folder() / "metrics.json", "golden"));
  return json;
}

std::vector<std::string> to_texts(const Json& list) { return list.get<std::vector<std::string>>(); }

std::vector<Probe> to_probes(const Json& list) {
  std::vector<Probe> probes;
  for (const Json& probe : list)
    probes.push_back({probe.at("prompt").get<std::string>(), to_texts(probe.at("answers"))});
  return probes;
}

std::vector<ProbeSection> to_sections(const Json& list) {
  std::vector<ProbeSection> sections;
  for (const Json& section : list)
    sections.push_back({section.at("name").get<std::string>(), to_probes(section.at("probes"))});
  return sections;
}

EditRequest to_request(const Json& json) {
  EditRequest request;
  request.id = json.at("id").get<std::string>();
  request.subject = json.at("subject").get<std::string>();
  request.prompt = fill_prompt(json.at("prompt").get<std::string>(), request.subject, "golden");
  request.target = json.at("target").get<std::string>();
  request.target_true = json.at("target_true").get<std::string>();
  request.target_aliases = to_texts(json.at("target_aliases"));
  request.paraphrases = to_texts(json.at("paraphrases"));
  request.neighborhood = to_texts(json.at("neighborhood"));
  request.locality = to_sections(json.at("locality"));
  request.portability = to_sections(json.at("portability"));
  request.multihop = to_probes(json.at("multihop"));
  request.generation_prompts = to_texts(json.at("generation_prompts"));
  request.relation = json.at("relation").get<std::string>();
  request.target_id = json.at("target_id").get<std::string>();
  return request;
}

CausalLM load(const std::filesystem::path& model) {
  const Checkpoint checkpoint = Checkpoint::open(model);
  const ModelConfig config = load_model_config(checkpoint);
  return CausalLM::load(checkpoint, config,
                        plan_placement(config.n_layers, std::vector{Placement::host()}, at::kDouble));
}

CounterFactFiles counterfact_files() {
  return {folder() / "snippets.json", folder() / "idf.npy", folder() / "vocabulary.json"};
}

/// Whether a metric is of texts that lancet samples: there is no golden value of those.
bool is_of_sampled_texts(const std::string& name) {
  return name == "counterfact_ge" || name == "counterfact_rs" || name == "easyedit_fluency";
}

class MetricsGolden : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    requests_ = new std::vector<EditRequest>;
    for (const Json& json : golden().at("requests")) requests_->push_back(to_request(json));
    const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(testing::demo_model_folder());
    EvaluationOptions options;
    for (const ProtocolRow& row : protocol_table()) options.protocols.emplace_back(row.name);
    options.chat_template.by_hand = golden().at("chat_template").get<std::string>();
    options.thinking_tokens = options.generated_tokens;
    options.counterfact = counterfact_files();
    options.multihop_examples = folder() / "examples.txt";
    options.long_form.tokens = options.generated_tokens;
    options.judge = JudgeOptions{.command = to_texts(golden().at("judge"))};
    const EvaluationPlan plan(*tokenizer, *requests_, options, kPositions);
    before_ = new Evaluation(plan.run(load(testing::demo_model_folder()), "unedited", alone()));
    after_ = new Evaluation(plan.run(load(folder() / "edited"), "edited", alone(), before_));
  }
  static void TearDownTestSuite() {
    delete before_;
    delete after_;
    delete requests_;
  }

  static void expect_equal(const Evaluation& evaluation, const Json& expected) {
    size_t compared = 0;
    for (const MetricRow& row : evaluation.metrics) {
      if (is_of_sampled_texts(row.name)) continue;
      ++compared;
      ASSERT_TRUE(expected.contains(row.name)) << row.name;
      const Json& golden_metric = expected.at(row.name);
      if (golden_metric.at("total").is_null()) {
        EXPECT_FALSE(evaluation.totals.at(row.name).mean()) << row.name;
        continue;
      }
      const double total = golden_metric.at("total").get<double>();
      EXPECT_NEAR(evaluation.totals.at(row.name).mean().value(), total, kError * std::max(1.0, total)) << row.name;
      const Json& by_request = golden_metric.at("requests");
      for (size_t i = 0; i < by_request.size(); ++i) {
        const std::optional<double> mean = evaluation.requests[i].at(row.name).mean();
        ASSERT_EQ(mean.has_value(), !by_request[i].is_null()) << row.name << " of request " << i;
        if (!mean) continue;
        EXPECT_NEAR(*mean, by_request[i].get<double>(), kError * std::max(1.0, *mean)) << row.name << ", " << i;
      }
    }
    EXPECT_EQ(compared, expected.size());
  }

  static inline std::vector<EditRequest>* requests_ = nullptr;
  static inline Evaluation *before_ = nullptr, *after_ = nullptr;
};

TEST_F(MetricsGolden, OfTheUneditedModel) { expect_equal(*before_, golden().at("models").at("unedited")); }

TEST_F(MetricsGolden, OfAnEditedModel) { expect_equal(*after_, golden().at("models").at("edited")); }

TEST_F(MetricsGolden, TextsAreJudgedAsWritten) {
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(testing::demo_model_folder());
  EvaluationOptions options;
  options.protocols = {"counterfact"};
  options.counterfact = counterfact_files();
  const Evaluation evaluation =
      EvaluationPlan(*tokenizer, *requests_, options, kPositions).run(load(folder() / "edited"), "texts", alone());
  const TfIdf tfidf = TfIdf::open(folder() / "idf.npy", folder() / "vocabulary.json");
  const Json snippets = Json::parse(read_text_file(folder() / "snippets.json", "golden"));
  size_t place = 0;  // of the texts, which stand in the order of the requests' prompts
  for (size_t i = 0; i < requests_->size(); ++i) {
    const EditRequest& request = (*requests_)[i];
    std::vector<std::string> written, reference;
    Tally entropy;
    for (const std::string& prompt : request.generation_prompts) {
      written.push_back(evaluation.answers.texts.at(place++)->whole);
      ASSERT_TRUE(written.back().starts_with(prompt)) << written.back();
      entropy.add(ngram_entropy(written.back()));
    }
    for (const Json& entry : snippets)
      if (entry.at("relation_id") == request.relation && entry.at("target_id") == request.target_id)
        for (const Json& sample : entry.at("samples")) reference.push_back(sample.at("text").get<std::string>());
    EXPECT_NEAR(evaluation.requests[i].at("counterfact_ge").mean().value(), entropy.mean().value(), kError);
    const std::optional<double> rs = evaluation.requests[i].at("counterfact_rs").mean();
    ASSERT_EQ(rs.has_value(), !reference.empty());
    if (!rs) continue;
    EXPECT_NEAR(*rs, tfidf.cosine(join(written, " "), join(reference, " ")).value(), kError);
  }
  EXPECT_EQ(place, evaluation.answers.texts.size());
}

TEST(TextsGolden, WordsAndEntropy) {
  for (const Json& row : golden().at("texts")) {
    const auto text = row.at("text").get<std::string>();
    EXPECT_EQ(word_tokens(text), to_texts(row.at("words"))) << text;
    EXPECT_NEAR(ngram_entropy(text), row.at("entropy").get<double>(), 1e-12) << text;
  }
}

TEST(TextsGolden, OverlapsOfRougeAndBleu) {
  for (const Json& row : golden().at("overlaps")) {
    const auto text = row.at("text").get<std::string>(), reference = row.at("reference").get<std::string>();
    const RougeL rouge = rouge_l(text, reference).value();
    const Json& expected = row.at("rouge_l");
    EXPECT_NEAR(rouge.precision, expected.at("precision").get<double>(), 1e-12) << text;
    EXPECT_NEAR(rouge.recall, expected.at("recall").get<double>(), 1e-12) << text;
    EXPECT_NEAR(rouge.f1, expected.at("f1").get<double>(), 1e-12) << text;
    EXPECT_NEAR(character_bleu(text, reference), row.at("bleu").get<double>(), 1e-12) << text << " | " << reference;
  }
}

TEST(TextsGolden, CosinesOfTfIdf) {
  const TfIdf tfidf = TfIdf::open(folder() / "idf.npy", folder() / "vocabulary.json");
  for (const Json& row : golden().at("cosines")) {
    const auto a = row.at("a").get<std::string>(), b = row.at("b").get<std::string>();
    EXPECT_NEAR(tfidf.cosine(a, b).value(), row.at("cosine").get<double>(), 1e-12) << a << " | " << b;
  }
}

}  // namespace
}  // namespace lancet
