#include "lancet/statistics/covariance.h"

#include <torch/types.h>
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/models/batching.h"
#include "lancet/models/memory.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/devices.h"
#include "lancet/runtime/host_workers.h"
#include "moment_sums.h"

namespace lancet {
namespace {

TokenBatch make_chunk(const CorpusTokens& corpus, std::span<const int64_t> documents) {
  std::vector<std::span<const TokenId>> parts;
  for (const int64_t document : documents) parts.emplace_back(corpus.documents[static_cast<size_t>(document)]);
  return make_packed_batch(parts);
}

/// Returns the number of tokens; one that documents share counts for each of them.
int64_t tokens_of(const TokenBatch& chunk) {
  const Tensor& places_P = chunk.sequence.places_P;
  return places_P.defined() ? places_P.size(0) : chunk.ids_BT.numel();
}

/// The rows of a chunk whose keys are summed.
struct CountedRows {
  Tensor places_N;   ///< int64, host; undefined: all
  RowCounts counts;  ///< how often each of them counts

  Tensor of(const Tensor& keys_TF) const {
    return places_N.defined() ? keys_TF.index_select(0, places_N.to(keys_TF.device())) : keys_TF;
  }
};

/// Returns the row of each document's last token, in the order of the documents.
Tensor ends_of(const SequenceInfo& sequence) {
  std::vector<int64_t> ends;
  int64_t end = 0;
  for (const DocumentRun& run : sequence.packed)
    for (int64_t i = 0; i < run.documents; ++i) ends.push_back((end += run.tokens) - 1);
  const Tensor places_N = torch::tensor(ends, torch::kLong);
  return sequence.places_P.defined() ? sequence.places_P.index_select(0, places_N) : places_N;
}

CountedRows counted_rows(const CorpusTokens& corpus, const SequenceInfo& sequence) {
  if (corpus.only_ends) return {ends_of(sequence), RowCounts()};
  return {Tensor(), RowCounts(token_counts(sequence))};
}

/// Hooks that add each layer's keys of one chunk to its sum. They borrow the sums and the chunk's rows.
HookSet hooks_of(MomentSums& sums, std::span<const int64_t> layers, CountedRows& rows) {
  HookSet hooks;
  for (size_t i = 0; i < layers.size(); ++i)
    hooks.observe({HookPoint::kMlpKey, layers[i]}, [&sum = sums.of(i), &rows](const Tensor& keys_1TF) {
      sum.add(rows.of(keys_1TF.flatten(0, 1)), rows.counts);
    });
  hooks.stop_at({HookPoint::kMlpKey, layers.back()});
  return hooks;
}

/// Returns this rank's chunks. The plan depends only on the corpus and the size of chunks, because it decides the order
/// of the sums, and so their last bits.
std::vector<std::vector<int64_t>> own_chunks(const CausalLM& model, const CorpusTokens& corpus, int64_t chunk_tokens,
                                             const Communicator& communicator) {
  if (chunk_tokens == 0) chunk_tokens = statistics_chunk_tokens(model.config(), model.placement().weight_dtype());
  auto chunks = plan_packs(corpus.documents, chunk_tokens, longest_usual_text(model.config()));
  std::vector<std::vector<int64_t>> own;
  for (const size_t i : own_pieces(communicator, chunks.size())) own.push_back(std::move(chunks[i]));
  return own;
}

int64_t tokens_of(const CorpusTokens& corpus, const std::vector<std::vector<int64_t>>& chunks) {
  int64_t tokens = 0;
  for (const std::vector<int64_t>& documents : chunks)
    for (const int64_t document : documents)
      tokens += static_cast<int64_t>(corpus.documents[static_cast<size_t>(document)].size());
  return tokens;
}

/// The largest chunk on an accelerator: as many rows as one product of GramAccumulator takes.
constexpr int64_t kMostChunkTokens = 16384;

int64_t chunk_token_bytes(const ModelConfig& config, at::ScalarType dtype) {
  // Counts what is in memory at the MLP's key: gate, up, the activated gate, the key, and the residual stream with its
  // normalised copies; also the key in f32 for its products, plain and multiplied by its counts. 14336 x 4096: 442 kB
  // per token in f32, so 2048 tokens; 279 kB in bf16, so 3584 tokens.
  const int64_t d_key = config.largest_keys().size();
  return (4 * d_key + 6 * config.d_model) * static_cast<int64_t>(at::elementSize(dtype)) + 8 * d_key;
}

void collect_own_chunks(const CausalLM& model, const CorpusTokens& corpus,
                        const std::vector<std::vector<int64_t>>& chunks, std::span<const int64_t> layers,
                        MomentSums& sums, PartialSums* saves) {
  const int64_t tokens = tokens_of(corpus, chunks);
  Progress progress("statistics", tokens, "tokens", saves != nullptr ? kOncePerModel : "");
  progress.measure_by("", static_cast<int64_t>(chunks.size()));  // documents with equal beginnings cost less per token
  int64_t begin = sums.go_on_from(saves, tokens, progress);
  // the turns make every layer's sum take the chunks in their order
  const auto add_chunk = [&](int64_t i, StageTurn& turn) {
    const torch::NoGradGuard no_grad_in_this_thread;
    TokenBatch chunk = make_chunk(corpus, chunks[static_cast<size_t>(i)]);
    chunk.sequence.turn = &turn;
    CountedRows rows = counted_rows(corpus, chunk.sequence);
    model.run_layers(model.embed(chunk.ids_BT, chunk.sequence), chunk.sequence, {0, layers.back() + 1},
                     hooks_of(sums, layers, rows));
    progress.advance_pieces();
    progress.advance(tokens_of(chunk));
  };
  const auto n_chunks = static_cast<int64_t>(chunks.size());
  while (begin < n_chunks) {
    begin =
        run_in_turns(model.placement(), begin, n_chunks, add_chunk, [&] { return saves != nullptr && saves->due(); });
    if (begin < n_chunks || (saves != nullptr && saves->due())) saves->save(sums.after(begin));
  }
}

}  // namespace

int64_t statistics_chunk_tokens(const ModelConfig& config, at::ScalarType dtype) {
  constexpr int64_t kMostBytes = 1'000'000'000, kFewest = 256;
  return std::clamp(kMostBytes / chunk_token_bytes(config, dtype) / kFewest * kFewest, kFewest, kForwardTokens);
}

int64_t statistics_chunk_tokens(const ModelConfig& config, const Placement& placement,
                                std::span<const int64_t> layers) {
  const int64_t usual = statistics_chunk_tokens(config, placement.weight_dtype());
  if (placement.is_host_only() || layers.empty()) return usual;
  int64_t room = DeviceBudget::kUnknown;  // the smallest free memory of the devices, without the sums
  for (const Stage& stage : placement.stages()) {
    if (stage.begin > layers.back()) break;
    const std::optional<int64_t> planned = placement.room_bytes(stage.device);
    const bool is_known = planned && *planned < DeviceBudget::kUnknown / 2 && stage.device != Placement::host();
    if (!is_known || holds_scores(config, stage.device, placement.weight_dtype())) return usual;
    int64_t sums = 0;
    for (const int64_t layer : layers)
      if (placement.stage_of(layer) == placement.stage_of(stage.begin) && placement.solve_device(layer) == stage.device)
        sums += 8 * config.key_shape(layer).moments();
    room = std::min(room, *planned - sums);
  }
  // only a quarter, because passes make copies that chunk_token_bytes() does not count
  for (const int64_t tokens : {kMostChunkTokens, kMostChunkTokens / 2})
    if (tokens > usual && tokens * chunk_token_bytes(config, placement.weight_dtype()) <= room / 4) return tokens;
  return usual;
}

std::vector<Covariance> collect_covariances(const CausalLM& model, const CorpusTokens& corpus,
                                            std::span<const int64_t> layers, Communicator& communicator,
                                            PassOptions options) {
  const torch::NoGradGuard no_grad;
  std::optional<MomentSums> sums;
  communicator.run_collectively("statistics", [&] {
    sums.emplace(model, MomentSide::kKeys, layers);
    collect_own_chunks(model, corpus, own_chunks(model, corpus, options.chunk_tokens, communicator), layers, *sums,
                       options.saves);
  });
  sums->sum_over(communicator);
  return std::move(*sums).take();
}

CorpusTokens read_corpus(const Tokenizer& tokenizer, const StatisticsOptions& options, const ModelConfig& config) {
  CorpusTokens corpus;
  const size_t cap = static_cast<size_t>(std::min(options.document_tokens, config.max_positions));
  const int64_t budget = options.token_budget(config.least_tokens());
  DocumentReader reader(options.corpus);
  while (corpus.tokens < budget) {
    const std::optional<std::string> text = reader.next();
    if (!text) {
      corpus.exhausted = true;
      break;
    }
    std::vector<TokenId> ids = tokenizer.ids(*text);
    const size_t left = static_cast<size_t>(budget - corpus.tokens);
    ids.resize(std::min({ids.size(), cap, left}));
    if (ids.empty()) continue;
    corpus.tokens += static_cast<int64_t>(ids.size());
    corpus.documents.push_back(std::move(ids));
  }
  if (corpus.tokens < config.least_tokens())
    throw ConfigError(cat("statistics: ", options.corpus.string(), ": ", corpus.tokens,
                          " tokens, but covariances of this model's keys need at least ", config.least_tokens(),
                          ". Use a larger corpus or raise statistics.tokens"));
  return corpus;
}

CorpusTokens broadcast_corpus(Communicator& communicator, const CorpusTokens& corpus) {
  if (communicator.size() == 1) return corpus;
  std::vector<int64_t> lengths{corpus.tokens, corpus.exhausted ? 1 : 0, corpus.only_ends ? 1 : 0};
  std::string ids;
  communicator.run_collectively("statistics", [&] {
    for (const std::vector<TokenId>& document : corpus.documents) {
      lengths.push_back(static_cast<int64_t>(document.size()));
      ids.append(reinterpret_cast<const char*>(document.data()), document.size() * sizeof(TokenId));
    }
  });
  lengths = broadcast_numbers(communicator, lengths);
  ids = communicator.broadcast(std::move(ids));
  CorpusTokens received{{}, lengths.at(0), lengths.at(1) == 1, lengths.at(2) == 1};
  size_t at = 0;
  for (size_t i = 3; i < lengths.size(); ++i) {
    std::vector<TokenId>& document = received.documents.emplace_back(static_cast<size_t>(lengths[i]));
    const size_t bytes = document.size() * sizeof(TokenId);
    std::memcpy(document.data(), ids.data() + at, bytes);
    at += bytes;
  }
  return received;
}

}  // namespace lancet
