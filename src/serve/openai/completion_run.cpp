#include "completion_run.h"

#include <algorithm>
#include <span>
#include <utility>

#include "completion_json.h"
#include "lancet/core/strings.h"
#include "lancet/session/added_text.h"
#include "stop_cut.h"

namespace lancet {
namespace {

/// An answer while it grows.
struct AnswerRow {
  std::vector<TokenId> ids;  ///< the prompt and the new tokens
  size_t n_prompt = 0;
  std::string prompt_text;
  StopCut cut;

  size_t n_added() const { return ids.size() - n_prompt; }
};

class CompletionRun {
 public:
  CompletionRun(const AskableModel& model, const CompletionOrder& order, const CompletionWriter& writer,
                const CompletionSink& sink)
      : model_(model), order_(order), writer_(writer), sink_(sink) {
    for (const std::vector<TokenId>& prompt : order.prompts)
      for (int64_t i = 0; i < order.samples; ++i)
        rows_.push_back({prompt, prompt.size(), decoded(prompt), StopCut(order.stops)});
  }

  void run() {
    if (order_.is_streamed) open_streams();
    if (order_.tokens > 0) grow();
    std::vector<CompletionChoice> choices;
    for (size_t i = 0; i < rows_.size(); ++i) choices.push_back(finished(i));
    if (!order_.is_streamed) return sink_(writer_.whole(choices, usage()));
    for (const CompletionChoice& choice : choices) sink_(writer_.piece(choice));
    if (order_.streams_usage) sink_(writer_.usage_piece(usage()));
  }

 private:
  /// Whether pieces are sent while the answer grows. Log-probabilities are read at the end, so an answer with them is
  /// sent in one piece.
  bool grows_in_sight() const { return order_.is_streamed && !order_.n_likely; }

  void open_streams() {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (order_.kind == CompletionKind::kChat) sink_(writer_.opening(static_cast<int64_t>(i)));
      if (order_.echoes && grows_in_sight()) send(i, rows_[i].prompt_text);
    }
  }

  void grow() {
    std::vector<GenerateRow> wanted;
    for (const AnswerRow& row : rows_) wanted.push_back({row.ids, order_.tokens});
    const auto added = model_.generate_by(
        wanted, GenerateOptions{.eos_ids = order_.end_ids,
                                .sampling = order_.sampling,
                                .on_token = [this](int64_t row, TokenId id) { add(static_cast<size_t>(row), id); },
                                .ends =
                                    [this](int64_t row, std::span<const TokenId>) {
                                      return rows_[static_cast<size_t>(row)].cut.is_stopped();
                                    }});
    static_cast<void>(added);  // add() was told so
  }

  void add(size_t place, TokenId id) {
    AnswerRow& row = rows_[place];
    row.ids.push_back(id);
    std::string text = text_of(row);
    text.resize(whole_bytes(text));
    const std::string more = row.cut.advance(text);
    if (grows_in_sight()) send(place, more);
  }

  void send(size_t place, const std::string& text) {
    if (!text.empty()) sink_(writer_.piece({.index = static_cast<int64_t>(place), .text = text}));
  }

  /// Returns the rest of a finished answer; if it was not streamed, all of it.
  CompletionChoice finished(size_t place) {
    AnswerRow& row = rows_[place];
    const std::string rest = row.cut.finish(text_of(row));
    const bool is_short = static_cast<int64_t>(row.n_added()) < order_.tokens;
    CompletionChoice choice{.index = static_cast<int64_t>(place),
                            .text = grows_in_sight() ? rest : row.cut.told(),
                            .finish_reason = is_short || row.cut.is_stopped() ? "stop" : "length"};
    if (order_.echoes && !grows_in_sight()) choice.text.insert(0, row.prompt_text);
    if (order_.n_likely) choice.scored = scored_tokens(row);
    return choice;
  }

  std::string decoded(std::span<const TokenId> ids) const { return model_.tokenizer().decode(ids); }
  std::string text_of(const AnswerRow& row) const { return added_text(model_.tokenizer(), row.ids, row.prompt_text); }

  /// Returns the text that a token adds after the token before it.
  std::string token_text(TokenId before, TokenId id) const {
    if (order_.names_tokens_by_id) return cat("token_id:", id);
    const std::vector<TokenId> both{before, id};
    const std::string text = added_text(model_.tokenizer(), both, decoded(std::span(both).first(1)));
    return text.empty() ? model_.tokenizer().piece(id) : text;
  }

  /// The first token of all, which has no score.
  ScoredToken first_token(TokenId id) const {
    if (order_.names_tokens_by_id) return {.text = cat("token_id:", id)};
    const std::string text = decoded(std::vector<TokenId>{id});
    return {.text = text.empty() ? model_.tokenizer().piece(id) : text};
  }

  std::vector<ScoredToken> scored_tokens(const AnswerRow& row) const {
    std::vector<ScoredToken> tokens;
    size_t place = order_.echoes ? 1 : row.n_prompt;
    if (order_.echoes) tokens.push_back(first_token(row.ids.front()));
    for (TokenScore& score : model_.score_tokens(row.ids, place, *order_.n_likely)) {
      const TokenId before = row.ids[place++ - 1];
      ScoredToken token{.text = token_text(before, score.own.id)};
      for (const LikelyToken& likely : score.likeliest) token.likely_texts.push_back(token_text(before, likely.id));
      token.score = std::move(score);
      tokens.push_back(std::move(token));
    }
    return tokens;
  }

  CompletionUsage usage() const {
    CompletionUsage usage;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (i % static_cast<size_t>(order_.samples) == 0) usage.prompt_tokens += static_cast<int64_t>(rows_[i].n_prompt);
      usage.new_tokens += static_cast<int64_t>(rows_[i].n_added());
    }
    return usage;
  }

  const AskableModel& model_;
  const CompletionOrder& order_;
  const CompletionWriter& writer_;
  const CompletionSink& sink_;
  std::vector<AnswerRow> rows_;
};

}  // namespace

void run_completion(Session& session, const CompletionOrder& order, const ServedModel& model, const std::string& state,
                    const CompletionSink& sink) {
  const CompletionWriter writer(order, model, state);
  session.ask([&](const AskableModel& asked) { CompletionRun(asked, order, writer, sink).run(); });
}

}  // namespace lancet
