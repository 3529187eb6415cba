// Tokenisation as public codes do it, on the first merges of Mistral's tokenizer, and what values make of it.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/editing/contexts.h"
#include "lancet/training/values.h"
#include "support/edit_setup.h"
#include "support/text_fixture.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::TinyModel;
using Ids = std::vector<TokenId>;

/// "The mother tongue of Danielle Darrieux is" by that tokenizer with BOS.
const Ids kPrompt{1, 415, 290, 1039, 261, 566, 441, 302, 384, 276, 755, 291, 384, 283, 373, 1760, 1554, 349};
constexpr int64_t kSubjectLast = 16;
const Ids kParis{367, 283, 278};
const Ids kNameBeforeLast{318, 263, 490, 1778, 1133, 1783, 1009, 412};  ///< " Sergey Prokofie", of " Sergey Prokofiev"

EditRequest request_for(const std::string& target) {
  EditRequest request;
  request.id = "0";
  request.subject = "Danielle Darrieux";
  request.prompt = fill_prompt("The mother tongue of {} is", request.subject, "request");
  request.target = target;
  return request;
}

Ids joined(Ids ids, const Ids& more) {
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

/// Expected ids: sentencepiece's own program, on the texts that the public codes build.
struct SentencePieceCompat : public ::testing::Test {
  PreparedRequest prepare(const std::string& target, Compat compat) const {
    return prepare_requests(*tokenizer, std::vector{request_for(target)}, std::vector<std::string>{"{}", "I know. {}"},
                            compat)[0];
  }
  std::unique_ptr<Tokenizer> tokenizer =
      open_sentencepiece_tokenizer(LANCET_SOURCE_DIR "/tests/fixtures/tokenizers/mistral-7b-v0.1.model", {});
};

TEST_F(SentencePieceCompat, WithoutItTheTargetContinuesThePrompt) {
  const PreparedRequest prepared = prepare("Paris", Compat::kNone);
  EXPECT_EQ(prepared.target, kParis);
  EXPECT_EQ(prepared.rows[0].ids, joined(kPrompt, {367, 283}));
  EXPECT_EQ(prepared.rows[0].lookup, kSubjectLast);
  EXPECT_EQ(prepare("Sergey Prokofiev", Compat::kNone).rows[0].ids, joined(kPrompt, kNameBeforeLast));
}

TEST_F(SentencePieceCompat, OfEasyEditKeepsTheLoneSpaceSymbol) {
  const PreparedRequest paris = prepare("Paris", Compat::kEasyEdit);
  EXPECT_EQ(paris.target, joined({1759}, kParis));
  EXPECT_EQ(paris.rows[0].ids,
            joined(kPrompt, {367, 283}));  // so the subject's last token is to predict the lone symbol
  const PreparedRequest name = prepare("Sergey Prokofiev", Compat::kEasyEdit);
  EXPECT_EQ(name.target, joined(joined({1759}, kNameBeforeLast), {1782}));
  EXPECT_EQ(name.rows[0].ids, joined(kPrompt, kNameBeforeLast));
  EXPECT_EQ(prepare("1998", Compat::kEasyEdit).target, (Ids{259, 1794, 1828, 1828, 1837}));
}

TEST_F(SentencePieceCompat, OfMemitDropsItAndGluesTheDecodedTextToThePrompt) {
  EXPECT_EQ(prepare("Paris", Compat::kMemit).target, kParis);
  EXPECT_EQ(prepare("1998", Compat::kMemit).target, (Ids{1794, 1828, 1828, 1837}));
  const PreparedRequest name = prepare("Sergey Prokofiev", Compat::kMemit);
  EXPECT_EQ(name.target, joined(kNameBeforeLast, {1782}));
  Ids glued(kPrompt.begin(), kPrompt.end() - 1);  // "... isSergey Prokofie"
  EXPECT_EQ(name.rows[0].ids, joined(glued, {349, 1789, 263, 490, 1778, 1133, 1783, 1009, 412}));
}

TEST_F(SentencePieceCompat, CountsTokensUpToTheSubjectsEnd) {
  for (const Compat compat : {Compat::kMemit, Compat::kEasyEdit}) {
    const PreparedRequest prepared = prepare("Paris", compat);
    for (const int64_t context : {0, 1}) {
      const auto at = static_cast<size_t>(context);
      EXPECT_EQ(prepared.prompts[at].lookup, kSubjectLast + 3 * context);
      EXPECT_EQ(prepared.rows[at].lookup, kSubjectLast + 3 * context);
    }
    EXPECT_EQ(prepared.drift.lookup, 9);
  }
}

TEST_F(SentencePieceCompat, RefusesLabelsBeforeTheSubjectsEnd) {
  EditRequest request = request_for("Paris");
  request.prompt = fill_prompt("The mother tongue of {}", request.subject, "request");
  const auto prepare_it = [&] {
    prepare_requests(*tokenizer, std::vector{request}, std::vector<std::string>{"{}"}, Compat::kEasyEdit);
  };
  EXPECT_TRUE(
      testing::contains(testing::error_of<ConfigError>(prepare_it), {"request 0", "editor.compat", "4 labels"}));
}

TEST(LocateByCount, CountsTheTokensOfTheTextUpToTheSubjectsEnd) {
  const auto tokenizer = testing::open_spec(testing::tiny_spec());
  const SubjectPrompt prompt{"Paris", {0, 3}};  // "▁Par" + "is" by itself, "▁Paris" in the whole
  EXPECT_EQ(locate_subject(*tokenizer, prompt).lookup, 1);
  EXPECT_EQ(locate_by_count(*tokenizer, prompt).lookup, 1);
  const SubjectPrompt longer{"Paris", {0, 4}};  // "▁Par" "i": one token more than the whole has
  EXPECT_EQ(locate_subject(*tokenizer, longer).lookup, 1);
  EXPECT_TRUE(testing::contains(testing::error_of<TokenizerError>([&] { locate_by_count(*tokenizer, longer); }),
                                {"3 tokens", "2 in all"}));
}

TEST(TemplateOpening, IsABosThatTheTokenizerReadsInText) {
  nlohmann::json spec = testing::tiny_spec();
  const auto plain = testing::open_spec(spec);
  EXPECT_EQ(template_opening(*plain, ContextOptions::Opening::kWithBos), "");  // "<s>" is stripped there
  std::string text = spec.dump();
  for (size_t at = text.find("\"<s>\""); at != std::string::npos; at = text.find("\"<s>\"", at))
    text.replace(at, 5, "\"<|begin_of_text|>\"");
  const auto other = testing::open_spec(nlohmann::json::parse(text), R"({"bos_token": "<|begin_of_text|>"})");
  EXPECT_EQ(template_opening(*other, ContextOptions::Opening::kWithBos), "<|begin_of_text|>");
  EXPECT_EQ(template_opening(*other, ContextOptions::Opening::kPlain), "");
  nlohmann::json like_gpt2 = nlohmann::json::parse(text);
  like_gpt2["post_processor"] = nullptr;  // a BOS by name, which is not put before a text
  const auto bare = testing::open_spec(like_gpt2, R"({"bos_token": "<|begin_of_text|>"})");
  EXPECT_EQ(template_opening(*bare, ContextOptions::Opening::kWithBos), "");
}

/// The first loss, without drift and decay, from a whole pass over each row: the last places predict the target.
double plain_nll(const CausalLM& model, const PreparedRequest& request) {
  double nll = 0;
  for (const TargetRow& row : request.rows) {
    const TokenBatch batch = make_batch(std::vector<Ids>{row.ids});
    const Tensor log_probs_TV =
        torch::log_softmax(model.logits(model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence,
                                                         model.all_layers())[0]),
                           -1);
    const size_t first = row.ids.size() - row.target.size();
    for (size_t j = 0; j < row.target.size(); ++j)
      nll -= log_probs_TV[static_cast<int64_t>(first + j)][row.target[j]].item<double>() /
             static_cast<double>(row.target.size() * request.rows.size());
  }
  return nll;
}

TEST(ValuesWithCompat, LossesAreThoseOfTheLastPlacesOfEachRow) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const ValueOptions options{.steps = 2, .lr = 0.1, .weight_decay = 0, .kl = 0, .stop_loss = 0};
  std::vector<Ids> targets;
  for (const Compat compat : {Compat::kNone, Compat::kMemit, Compat::kEasyEdit}) {
    const std::vector<PreparedRequest> requests =
        prepare_requests(*tiny.tokenizer, testing::some_requests(5), testing::kContexts, compat);
    targets.push_back(requests[0].target);
    const OptimizedValues values = optimize_values(model, requests, 1, options, {alone()});
    for (size_t i = 0; i < requests.size(); ++i)
      EXPECT_NEAR(values.losses[i].front().total, plain_nll(model, requests[i]), 1e-10) << i;
  }
  EXPECT_EQ(targets[2].size(), targets[1].size() + 1);
  EXPECT_EQ(tiny.tokenizer->piece(targets[2].front()), "▁");
}

TEST(ValuesInAChat, LossesAreThoseOfTheTargetsTokensThere) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const ValueOptions options{.steps = 2, .lr = 0.1, .weight_decay = 0, .kl = 0, .stop_loss = 0};
  const std::vector<PreparedRequest> requests = prepare_requests(
      *tiny.tokenizer, testing::some_requests(5), std::vector<std::string>{"{}", "I know. {}", "USER: {}\nIT:\n"});
  const OptimizedValues values = optimize_values(model, requests, 1, options, {alone()});
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].rows[1].target, requests[i].target);
    EXPECT_NE(requests[i].rows[2].target, requests[i].target) << "no space before it";
    EXPECT_NEAR(values.losses[i].front().total, plain_nll(model, requests[i]), 1e-10) << i;
  }
}

TEST(CompatOption, IsOfMethodsThatLocateASubject) {
  EXPECT_EQ(testing::editor_from("{method: memit, layers: [1]}")->target_rule().compat, Compat::kNone);
  EXPECT_EQ(testing::editor_from("{method: memit, layers: [1], compat: easyedit}")->target_rule().compat,
            Compat::kEasyEdit);
  const auto rect = testing::editor_from("{method: alphaedit, layers: [1], compat: memit, rect: {keep: 0.5}}");
  EXPECT_EQ(rect->target_rule().compat, Compat::kMemit);
  EXPECT_EQ(rect->contexts()->opening, ContextOptions::Opening::kWithBos);
  EXPECT_THROW(testing::editor_from("{method: ft, modules: {down: [1]}, compat: memit}"), ConfigError);
  EXPECT_THROW(testing::editor_from("{method: memit, layers: [1], compat: rome}"), ConfigError);
  EXPECT_THROW(testing::editor_from("{method: memit, layers: [1], compat: memit, contexts: {chat: 'Q: {} A:'}}"),
               ConfigError);
}

TEST(TargetEnd, IsTheTokenizersEndTokenWhereGenerationStopsAtIt) {
  const auto tokenizer = open_tokenizer(testing::demo_model_folder());
  const testing::TinyModel tiny;  // whose tokenizer has none
  ModelConfig config = tiny.config;
  const auto end_of = [&](TargetEnd end, const Tokenizer& of) { return target_form({.end = end}, config, of).end; };
  config.eos_ids = {5, *tokenizer->eos_id()};
  EXPECT_EQ(end_of(TargetEnd::kEos, *tokenizer), tokenizer->eos_id());
  EXPECT_EQ(end_of(TargetEnd::kAuto, *tokenizer), tokenizer->eos_id());
  EXPECT_EQ(end_of(TargetEnd::kNone, *tokenizer), std::nullopt);
  EXPECT_EQ(end_of(TargetEnd::kAuto, *tiny.tokenizer), std::nullopt);
  EXPECT_THROW(end_of(TargetEnd::kEos, *tiny.tokenizer), ConfigError);
  config.eos_ids = {5};  // it would write the token and go on
  EXPECT_EQ(end_of(TargetEnd::kAuto, *tokenizer), std::nullopt);
  EXPECT_THROW(end_of(TargetEnd::kEos, *tokenizer), ConfigError);
  EXPECT_EQ(testing::editor_from("{method: pmet, layers: [1], target_end: auto, rect: {}}")->target_rule().end,
            TargetEnd::kAuto);
  EXPECT_EQ(testing::editor_from("{method: ultraedit, target_end: eos}")->target_rule().end, TargetEnd::kEos);
}

}  // namespace
}  // namespace lancet
