#include "lancet/statistics/self_corpus.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/models/generate.h"
#include "lancet/models/memory.h"
#include "lancet/runtime/communicator.h"
#include "lancet/statistics/partial_sums.h"

namespace lancet {
namespace {

/// Increase the number when the same plan gives other documents.
constexpr std::string_view kSelfCorpusFormat = "lancet-self-corpus-4";

/// The largest memory for keys and values of documents that are sampled together. The documents of a round begin
/// together, and the last steps of a round work only for the few long documents, so large rounds waste less.
constexpr int64_t kCacheBytes = int64_t{2} << 30;
constexpr int64_t kShortCacheBytes = int64_t{1} << 28;
constexpr int64_t kMostRows = 1024;

using Documents = std::vector<std::vector<TokenId>>;

/// Counts tokens as they are sampled. The time that is left counts everything that is still sampled: documents that
/// have begun are written to their ends even if there are enough tokens, because only then is it known which tokens the
/// last documents give.
class SamplingProgress {
 public:
  SamplingProgress(const SelfCorpusPlan& plan, int64_t n_ranks)
      : plan_(plan),
        n_ranks_(n_ranks),
        steps_(0, plan.most_tokens - 1),
        progress_("sampling", plan.tokens, "tokens", plan.note) {
    progress_.estimate_by([this] { return work(); });
  }
  ~SamplingProgress() { progress_.finish(); }
  SamplingProgress(const SamplingProgress&) = delete;
  SamplingProgress& operator=(const SamplingProgress&) = delete;

  /// Begins `n_rows` documents of this rank.
  void begin_round(int64_t n_rows) {
    first_ = n_documents_;
    n_documents_ += n_rows;
    steps_.add_items(n_rows);
  }

  /// Counts a token of the document `row` of the round. Any thread may call it.
  void count_token(int64_t row) {
    steps_.step(first_ + row);
    const int64_t tokens = kept_ + (++drawn_ - drawn_before_) * n_ranks_;
    if (tokens >= plan_.tokens) say_what_is_left();
    progress_.set(std::min(plan_.tokens, tokens));
  }

  /// Ends the document `row` of the round. Any thread may call it.
  void end_document(int64_t row) { steps_.end(first_ + row); }

  /// Notes that the rounds so far gave `tokens`.
  void keep(int64_t tokens) {
    kept_ = tokens;
    drawn_before_ = drawn_.load();
    progress_.note(plan_.note);
    progress_.set(tokens);
  }

 private:
  void say_what_is_left() {
    const auto left = static_cast<size_t>(steps_.count_under_way());
    progress_.note(cat(counted(left, "document"), " to finish", plan_.note.empty() ? "" : cat(", ", plan_.note)));
  }

  /// Returns this rank's work in tokens: of the round, and of the rounds that are expected to be needed after it.
  WorkSoFar work() const {
    WorkSoFar work = steps_.work();
    const double round = static_cast<double>(drawn_ - drawn_before_) + work.left;
    const double missing = static_cast<double>(plan_.tokens - kept_) / static_cast<double>(n_ranks_) - round;
    work.left += std::max(0.0, missing);
    return work;
  }

  const SelfCorpusPlan& plan_;
  int64_t n_ranks_;
  int64_t first_ = 0, n_documents_ = 0;  ///< documents of this rank: the round's first one, all
  std::atomic<int64_t> kept_ = 0, drawn_before_ = 0;
  std::atomic<int64_t> drawn_ = 0;  ///< tokens that this rank sampled
  StepsAhead steps_;                ///< one item for each document of this rank
  Progress progress_;
};

int64_t row_bytes(const ModelConfig& config, at::ScalarType dtype, int64_t most_tokens) {
  return config.n_layers * std::max(key_value_bytes(config, dtype, most_tokens), 3 * mixer_state_bytes(config, dtype));
}

/// Returns the rows of the first round: as many as give `tokens` if all documents reach the largest length.
int64_t first_rows(const ModelConfig& config, at::ScalarType dtype, int64_t tokens, int64_t most_tokens) {
  const int64_t enough = std::min((tokens + most_tokens - 1) / most_tokens, kMostRows);
  return std::clamp<int64_t>(kCacheBytes / row_bytes(config, dtype, most_tokens), 1, enough);
}

/// Returns the rows of each rank's next round: the missing tokens divided by the mean length of the documents so far.
/// The documents do not depend on this number, because the random numbers of a document depend only on its row.
int64_t rows_of_round(const CausalLM& model, const SelfCorpusPlan& plan, const CorpusTokens& so_far, int64_t n_ranks) {
  const at::ScalarType dtype = model.placement().weight_dtype();
  if (so_far.tokens == 0) return first_rows(model.config(), dtype, plan.tokens, plan.most_tokens);
  const auto mean = static_cast<double>(so_far.tokens) / static_cast<double>(so_far.documents.size());
  const auto missing = static_cast<int64_t>(std::ceil(static_cast<double>(plan.tokens - so_far.tokens) / mean));
  return std::clamp<int64_t>((missing + n_ranks - 1) / n_ranks, 1,
                             sampling_rows(model.config(), dtype, plan.tokens, plan.most_tokens));
}

/// A round: `n_rows` rows for each rank, from row `first` on.
struct Round {
  int64_t first = 0, n_rows = 0;
};

/// Samples a round on each rank. Returns what the model wrote after the first token.
std::vector<Documents> sample_rounds(const CausalLM& model, const SelfCorpusPlan& plan, const Round& round,
                                     SamplingProgress& progress, Communicator& communicator) {
  const int64_t n_rows = round.n_rows;
  const std::vector<GenerateRow> rows(static_cast<size_t>(n_rows), GenerateRow{{plan.begin}, plan.most_tokens - 1});
  Documents own;
  std::vector<int64_t> flat;  // length and tokens of each document
  communicator.run_collectively("statistics", [&] {
    own = generate(model, rows,
                   {.eos_ids = model.config().eos_ids,
                    .sampling = {.top_k = 0, .seed = plan.seed},
                    .first_row = round.first + communicator.rank() * n_rows,
                    .batch_tokens = sampled_together(n_rows, model.placement().solve_on()) * plan.most_tokens,
                    .on_token = [&](int64_t row, TokenId) { progress.count_token(row); },
                    .on_end = [&](int64_t row) { progress.end_document(row); }});
    if (communicator.size() == 1) return;
    for (const std::vector<TokenId>& document : own) {
      flat.push_back(static_cast<int64_t>(document.size()));
      flat.insert(flat.end(), document.begin(), document.end());
    }
  });
  if (communicator.size() == 1) return {std::move(own)};
  std::vector<Documents> rounds;
  for (const std::vector<int64_t>& of_rank : gather_numbers(communicator, flat)) {
    Documents& documents = rounds.emplace_back();
    for (auto at = of_rank.begin(); at != of_rank.end();) {
      const int64_t length = *at++;
      documents.emplace_back(at, at + length);
      at += length;
    }
  }
  return rounds;
}

/// Adds the documents of one round until the corpus is full.
void append(CorpusTokens& corpus, const Documents& round, const SelfCorpusPlan& plan) {
  const int64_t before = corpus.tokens;
  for (const std::vector<TokenId>& said : round) {
    if (said.empty()) continue;  // the model wrote nothing
    if (corpus.tokens == plan.tokens) return;
    std::vector<TokenId> document{plan.begin};
    document.insert(document.end(), said.begin(), said.end());
    document.resize(std::min(document.size(), static_cast<size_t>(plan.tokens - corpus.tokens)));
    corpus.tokens += static_cast<int64_t>(document.size());
    corpus.documents.push_back(std::move(document));
  }
  if (corpus.tokens == before)
    throw ConfigError(cat("statistics.corpus: self: the model ended each of ", round.size(),
                          " documents at once: give a file of text as statistics.corpus"));
}

}  // namespace

int64_t sampling_rows(const ModelConfig& config, at::ScalarType dtype, int64_t tokens, int64_t most_tokens) {
  const int64_t of_short = std::min({kShortCacheBytes / row_bytes(config, dtype, most_tokens), kMostRows, tokens});
  return std::max(first_rows(config, dtype, tokens, most_tokens), of_short);
}

int64_t sampled_together(int64_t rows, SolveOn solve_on) {
  return solve_on == SolveOn::kHost ? std::max<int64_t>(1, rows / 2) : rows;
}

SelfCorpusPlan plan_self_corpus(const Tokenizer& tokenizer, const ModelConfig& config, const StatisticsOptions& options,
                                uint64_t seed) {
  const int64_t tokens = options.token_budget(config.least_tokens());
  if (tokens < config.least_tokens())
    throw ConfigError(cat("statistics.tokens: ", tokens, ", but covariances of this model's keys need at least ",
                          config.least_tokens(), ": raise statistics.tokens"));
  const std::optional<TokenId> bos = tokenizer.bos_id();
  if (!bos && config.eos_ids.empty())
    throw ConfigError(
        "statistics.corpus: self: expected a BOS or EOS token, which documents begin with, got neither in the model's "
        "files: give a file of text as statistics.corpus");
  return {.begin = bos ? *bos : config.eos_ids.front(),
          .tokens = tokens,
          .most_tokens = std::min(options.document_tokens, config.max_positions),
          .seed = seed};
}

CorpusTokens sample_corpus(const CausalLM& model, const SelfCorpusPlan& plan, Communicator& communicator) {
  CorpusTokens corpus;
  SamplingProgress progress(plan, communicator.size());
  for (Round round; corpus.tokens < plan.tokens; round.first += communicator.size() * round.n_rows) {
    round.n_rows = rows_of_round(model, plan, corpus, communicator.size());
    progress.begin_round(round.n_rows);
    // documents after the last needed one are dropped
    for (const Documents& documents : sample_rounds(model, plan, round, progress, communicator)) {
      if (corpus.tokens == plan.tokens) break;
      append(corpus, documents, plan);
    }
    progress.keep(corpus.tokens);
  }
  return corpus;
}

std::string sampled_text_key(const std::string& content_hash, const std::string& rule_key, const SelfCorpusPlan& plan) {
  ContentHash hash;
  hash.add(kSelfCorpusFormat)
      .add(content_hash)
      .add(plan.begin)
      .add(plan.tokens)
      .add(plan.most_tokens)
      .add(static_cast<int64_t>(plan.seed));
  if (!rule_key.empty()) hash.add(rule_key);
  return hash.hex();
}

StatisticsText sampled_text(const CausalLM& model, const std::string& content_hash, const SelfCorpusPlan& plan) {
  const Placement& placement = model.placement();
  const int64_t rows = sampled_together(
      first_rows(model.config(), placement.weight_dtype(), plan.tokens, plan.most_tokens), placement.solve_on());
  SelfCorpusPlan noted = plan;
  noted.note = kOncePerModel;
  return {sampled_text_key(content_hash, model.quantise_rule().key(model.config()), plan),
          [&model, noted](Communicator& communicator) { return sample_corpus(model, noted, communicator); },
          plan.tokens,
          cat("the model writes ", plan.tokens, " tokens of text, ", counted(static_cast<size_t>(rows), "document"),
              " at a time, in at least ", (plan.tokens + rows - 1) / rows, " passes")};
}

}  // namespace lancet
