#include "lancet/eval/questions.h"

#include <torch/types.h>
#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "ask_model.h"
#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/models/batching.h"
#include "lancet/models/generate.h"
#include "lancet/text/prompt.h"

namespace lancet {
namespace {

constexpr size_t kShownBytes = 60;  ///< largest number of bytes of a text in a message

std::span<const std::byte> bytes_of(const std::vector<TokenId>& ids) { return std::as_bytes(std::span(ids)); }

}  // namespace

void ModelQuestions::begin_request() { of_request_.emplace_back(); }

size_t ModelQuestions::score(Continuation continuation) {
  asked_.add(bytes_of(continuation.prompt)).add(bytes_of(continuation.target));
  const auto [place, is_new] =
      place_of_continuation_.try_emplace({continuation.prompt, continuation.target}, continuations_.size());
  if (is_new) continuations_.push_back(std::move(continuation));
  std::vector<size_t>& own = of_request_.back();
  const auto at = std::lower_bound(own.begin(), own.end(), place->second);
  if (at == own.end() || *at != place->second) own.insert(at, place->second);
  return place->second;
}

size_t ModelQuestions::generate(TextQuestion text) {
  asked_.add(bytes_of(text.prompt)).add(text.max_new_tokens).add(static_cast<int64_t>(text.decoding));
  const auto [place, is_new] = place_of_text_.try_emplace(text, texts_.size());
  if (is_new) texts_.push_back(std::move(text));
  return place->second;
}

size_t ModelQuestions::judge(JudgeQuestion question, std::string_view judge) {
  asked_.add(judge).add(question.about.target);
  for (const std::string& alias : question.about.aliases) asked_.add(alias);
  judged_.push_back(std::move(question));
  return judged_.size() - 1;
}

std::string ModelQuestions::take_key() { return std::exchange(asked_, {}).hex(); }

std::string QuestionCollector::where_of(std::string_view prompt) const {
  return cat(where_, ", prompt '", prompt, "'");
}

std::vector<TokenId> QuestionCollector::some_ids(std::vector<TokenId> ids, std::string_view prompt) const {
  if (ids.empty())
    throw ConfigError(
        cat(where_of(prompt), ": no tokens: expected some text, because this tokenizer puts no BOS before it"));
  return ids;
}

/// Checks the prompt's length. `tokens`: of the prompt together with `after`, which follows it.
void QuestionCollector::check_length(std::string_view prompt, std::string_view after, size_t tokens) {
  const auto count = static_cast<int64_t>(tokens);
  if (!limit_.has_room(count)) limit_.note(cat(where_, ": '", excerpt(prompt, kShownBytes), "' and ", after), count);
}

size_t QuestionCollector::score(std::string_view prompt, std::string_view target) {
  ContinuedPrompt continued = continue_prompt(tokenizer_, prompt, target, where_of(prompt));
  check_length(prompt, cat("'", excerpt(target, kShownBytes), "'"),
               continued.prompt.ids.size() + continued.target.size());
  return questions_.score({some_ids(std::move(continued.prompt.ids), prompt), std::move(continued.target)});
}

size_t QuestionCollector::score_ids(Continuation continuation) {
  const size_t tokens = continuation.prompt.size() + continuation.target.size();
  check_length(tokenizer_.decode(continuation.prompt), "what follows it", tokens);
  return questions_.score(std::move(continuation));
}

size_t QuestionCollector::generate(std::string_view prompt, int64_t max_new_tokens, Decoding decoding) {
  std::vector<TokenId> ids = some_ids(tokenizer_.ids(prompt), prompt);
  check_length(prompt, counted(static_cast<size_t>(max_new_tokens), "new token"),
               ids.size() + static_cast<size_t>(max_new_tokens));
  return questions_.generate({std::move(ids), max_new_tokens, decoding});
}

size_t QuestionCollector::chat(const ChatTemplate& chat, std::string_view message, Thinking thinking,
                               int64_t max_new_tokens) {
  std::vector<TokenId> ids = chat.ids(tokenizer_, message, thinking);
  check_length(message, cat(counted(static_cast<size_t>(max_new_tokens), "new token"), " as a chat"),
               ids.size() + static_cast<size_t>(max_new_tokens));
  return questions_.generate({std::move(ids), max_new_tokens, Decoding::kGreedy, chat.end_ids(tokenizer_)});
}

namespace {

/// Returns batches of row numbers. The rows of sampled text are numbered, so a batch is a range.
RowBatches ranges_of(size_t n_rows, int64_t row_tokens) {
  const auto together = static_cast<size_t>(std::max<int64_t>(1, kForwardTokens / std::max<int64_t>(1, row_tokens)));
  RowBatches batches;
  for (size_t row = 0; row < n_rows; ++row) {
    if (row % together == 0) batches.emplace_back();
    batches.back().push_back(static_cast<int64_t>(row));
  }
  return batches;
}

/// Returns one tensor with a row for each list: its length, then its ids.
Tensor packed_ids(const std::vector<std::vector<TokenId>>& rows, int64_t most) {
  Tensor ids_RX = torch::zeros({static_cast<int64_t>(rows.size()), most + 1}, at::kLong);
  int64_t* at = ids_RX.mutable_data_ptr<int64_t>();
  for (const std::vector<TokenId>& ids : rows) {
    *at = static_cast<int64_t>(ids.size());
    std::copy(ids.begin(), ids.end(), at + 1);
    at += most + 1;
  }
  return ids_RX;
}

std::vector<Continuation> chosen(const ModelQuestions& questions, const QuestionPart& part) {
  std::vector<Continuation> continuations;
  for (const size_t index : part.continuations) continuations.push_back(questions.continuations()[index]);
  return continuations;
}

TargetAnswer to_answer(const Continuation& continuation, ContinuationScore score) {
  TargetAnswer answer{score.nll, std::move(score.argmax)};
  for (size_t i = 0; i < continuation.target.size(); ++i)
    if (answer.argmax[i] == continuation.target[i]) ++answer.n_right;
  return answer;
}

GeneratedText to_text(const Tokenizer& tokenizer, std::vector<TokenId> ids, std::span<const TokenId> added) {
  GeneratedText text{{}, tokenizer.decode(added)};
  ids.insert(ids.end(), added.begin(), added.end());
  text.whole = tokenizer.decode(ids);
  return text;
}

/// Texts of the same kind are generated together.
using TextKind = std::pair<Decoding, std::vector<TokenId>>;

/// Answers the texts of one kind. `places`: their indices among all texts.
void answer(const TextKind& kind, std::span<const TextQuestion> texts, const std::vector<size_t>& places,
            const QuestionedModel& questioned, Communicator& communicator,
            std::vector<std::optional<GeneratedText>>& answers) {
  const auto& [decoding, end_ids] = kind;
  const bool samples = decoding == Decoding::kTopK5;
  std::vector<int64_t> lengths;
  int64_t most = 0;
  for (const size_t place : places) {
    lengths.push_back(static_cast<int64_t>(texts[place].prompt.size()) + texts[place].max_new_tokens);
    most = std::max(most, texts[place].max_new_tokens);
  }
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const RowBatches batches =
      samples ? ranges_of(places.size(), longest) : plan_batches(lengths, {.tokens = kForwardTokens});
  StepsAhead tokens(std::ssize(places), most);
  for (size_t i = 0; i < batches.size(); ++i)
    if (!communicator.is_mine(static_cast<int64_t>(i)))
      for (const int64_t row : batches[i]) tokens.end(row);
  Progress progress(questioned.stage, count_own_rows(communicator, batches), "texts");
  progress.estimate_by([&tokens] { return tokens.work(); });
  const Tensor ids_NX = scatter_rows(communicator, questioned.stage, batches, {at::kLong, Placement::host()},
                                     [&](const std::vector<int64_t>& batch) {
                                       std::vector<GenerateRow> rows;
                                       for (const int64_t row : batch) {
                                         const TextQuestion& text = texts[places[static_cast<size_t>(row)]];
                                         rows.push_back({text.prompt, text.max_new_tokens});
                                       }
                                       GenerateOptions options;
                                       options.on_token = [&](int64_t row, TokenId) {
                                         tokens.step(batch[static_cast<size_t>(row)]);
                                         progress.advance(0);
                                       };
                                       options.on_end = [&](int64_t row) {
                                         tokens.end(batch[static_cast<size_t>(row)]);
                                         progress.advance();
                                       };
                                       if (samples) {
                                         options.sampling.top_k = 5;
                                         options.first_row = batch.front();
                                       } else {
                                         options.eos_ids = questioned.model.config().eos_ids;
                                         options.eos_ids.insert(options.eos_ids.end(), end_ids.begin(), end_ids.end());
                                       }
                                       return packed_ids(generate(questioned.model, rows, options), most);
                                     });
  progress.finish();
  const int64_t* at = ids_NX.const_data_ptr<int64_t>();
  for (const size_t place : places) {
    answers[place] = to_text(questioned.tokenizer, texts[place].prompt, std::span(at + 1, static_cast<size_t>(at[0])));
    answers[place]->has_ended = at[0] < texts[place].max_new_tokens;
    at += most + 1;
  }
}

}  // namespace

QuestionPart QuestionPart::all(const ModelQuestions& questions) {
  QuestionPart part{std::vector<size_t>(questions.continuations().size()),
                    std::vector<size_t>(questions.texts().size())};
  std::iota(part.continuations.begin(), part.continuations.end(), 0);
  std::iota(part.texts.begin(), part.texts.end(), 0);
  return part;
}

ModelAnswers ask_model(const ModelQuestions& questions, const QuestionPart& part, const QuestionedModel& questioned,
                       Communicator& communicator) {
  ModelAnswers answers;
  answers.scores.resize(questions.continuations().size());
  answers.texts.resize(questions.texts().size());
  if (!part.continuations.empty()) {
    const std::vector<Continuation> continuations = chosen(questions, part);
    std::vector<ContinuationScore> scores =
        score_continuations(questioned.model, continuations, questioned.stage, communicator);
    for (size_t i = 0; i < scores.size(); ++i)
      answers.scores[part.continuations[i]] = to_answer(continuations[i], std::move(scores[i]));
  }
  std::map<TextKind, std::vector<size_t>> places_of_kind;
  for (const size_t index : part.texts) {
    const TextQuestion& text = questions.texts()[index];
    places_of_kind[{text.decoding, text.end_ids}].push_back(index);
  }
  for (const auto& [kind, places] : places_of_kind)
    answer(kind, questions.texts(), places, questioned, communicator, answers.texts);
  return answers;
}

EvaluationSize EvaluationSize::operator+(const EvaluationSize& other) const {
  EvaluationSize both;
  both.scoring = {.tokens = scoring.tokens + other.scoring.tokens,
                  .pack_tokens = std::max(scoring.pack_tokens, other.scoring.pack_tokens),
                  .pack_places = std::max(scoring.pack_places, other.scoring.pack_places),
                  .run_places = std::max(scoring.run_places, other.scoring.run_places),
                  .document_tokens = std::max(scoring.document_tokens, other.scoring.document_tokens),
                  .read_places = scoring.read_places + other.scoring.read_places};
  both.kept_states = kept_states + other.kept_states;
  both.generation = {.rows = generation.rows + other.generation.rows,
                     .row_tokens = std::max(generation.row_tokens, other.generation.row_tokens),
                     .prompt_tokens = std::max(generation.prompt_tokens, other.generation.prompt_tokens),
                     .sampling = generation.sampling.is_greedy() ? other.generation.sampling : generation.sampling};
  return both;
}

EvaluationSize size_of(const ModelQuestions& questions, const QuestionPart& part) {
  EvaluationSize size;
  size.scoring = scoring_size(chosen(questions, part));
  for (const size_t index : part.texts) {
    const TextQuestion& text = questions.texts()[index];
    const auto prompt = static_cast<int64_t>(text.prompt.size());
    ++size.generation.rows;
    if (text.decoding == Decoding::kTopK5) size.generation.sampling.top_k = 5;
    size.generation.prompt_tokens = std::max(size.generation.prompt_tokens, prompt);
    size.generation.row_tokens = std::max(size.generation.row_tokens, prompt + text.max_new_tokens);
  }
  return size;
}

}  // namespace lancet
