#include "ask_model.h"

#include <torch/types.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "lancet/models/generate.h"
#include "lancet/models/scatter_rows.h"

namespace lancet {
namespace {

/// Rows of sampled text are numbered: a batch of them is a range.
RowBatches ranges_of(size_t n_rows, int64_t row_tokens) {
  const auto together = static_cast<size_t>(std::max<int64_t>(1, kForwardTokens / std::max<int64_t>(1, row_tokens)));
  RowBatches batches;
  for (size_t row = 0; row < n_rows; ++row) {
    if (row % together == 0) batches.emplace_back();
    batches.back().push_back(static_cast<int64_t>(row));
  }
  return batches;
}

/// Ids as one tensor: of each row how many there are, and these.
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

/// What all rows that are generated together share.
using TextKind = std::pair<Decoding, std::vector<TokenId>>;

/// The texts of one kind; `places`: where they stand among all.
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
  const Tensor ids_NX = scatter_rows(communicator, questioned.stage, batches, {at::kLong, Placement::host()},
                                     [&](const std::vector<int64_t>& batch) {
                                       std::vector<GenerateRow> rows;
                                       for (const int64_t row : batch) {
                                         const TextQuestion& text = texts[places[static_cast<size_t>(row)]];
                                         rows.push_back({text.prompt, text.max_new_tokens});
                                       }
                                       GenerateOptions options;
                                       if (samples) {
                                         options.sampling.top_k = 5;
                                         options.first_row = batch.front();
                                       } else {
                                         options.eos_ids = questioned.model.config().eos_ids;
                                         options.eos_ids.insert(options.eos_ids.end(), end_ids.begin(), end_ids.end());
                                       }
                                       return packed_ids(generate(questioned.model, rows, options), most);
                                     });
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
