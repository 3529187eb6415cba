#include "lancet/models/generate.h"

#include <torch/types.h>
#include <algorithm>
#include <utility>

#include "cumulative_sums.h"
#include "generate_batch.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/finite.h"
#include "lancet/runtime/devices.h"
#include "lancet/runtime/host_workers.h"

namespace lancet {

std::vector<std::vector<TokenId>> generate(const CausalLM& model, std::span<const GenerateRow> rows,
                                           const GenerateOptions& options) {
  options.sampling.check();
  std::vector<int64_t> lengths;
  for (const GenerateRow& row : rows) lengths.push_back(static_cast<int64_t>(row.prompt.size()) + row.max_new_tokens);
  std::vector<std::vector<TokenId>> out(rows.size());
  const int64_t batch_tokens = std::max<int64_t>(1, options.batch_tokens / model.placement().batches_under_way());
  const std::vector<std::vector<int64_t>> batches = plan_batches(lengths, {.tokens = batch_tokens});
  run_overlapped(model.placement(), static_cast<int64_t>(batches.size()), [&](int64_t i) {
    const torch::NoGradGuard no_grad;
    GenerateBatch batch(model, rows, batches[static_cast<size_t>(i)], options);
    while (batch.next(out)) continue;
  });
  return out;
}

namespace {

/// Finished rows leave when they are an eighth of the batch, because then the keys and values of other rows move into
/// their places.
constexpr int64_t kLeavingShare = 8;

/// Returns the rows' numbers among all rows, which determine their random numbers.
std::vector<int64_t> row_numbers(const std::vector<int64_t>& rows, int64_t first_row) {
  std::vector<int64_t> numbers;
  for (const int64_t row : rows) numbers.push_back(first_row + row);
  return numbers;
}

/// Rows that continue keep their places, except the last ones, which take the places of finished rows.
std::vector<int64_t> places_to_keep(const std::vector<bool>& done) {
  const auto n_kept = static_cast<size_t>(std::count(done.begin(), done.end(), false));
  std::vector<int64_t> places;
  size_t last = done.size();
  for (size_t i = 0; i < n_kept; ++i) {
    size_t place = i;
    if (done[i]) {
      while (done[--last]) continue;
      place = last;
    }
    places.push_back(static_cast<int64_t>(place));
  }
  return places;
}

}  // namespace

GenerateBatch::GenerateBatch(const CausalLM& model, std::span<const GenerateRow> rows, std::vector<int64_t> batch_rows,
                             const GenerateOptions& options)
    : model_(model),
      rows_(rows),
      options_(options),
      left_(std::move(batch_rows)),
      sampler_(options.sampling, row_numbers(left_, options.first_row)),
      cache_(most_positions(), MixerMemory::kEnds),
      done_(left_.size(), false) {}

bool GenerateBatch::next(std::vector<std::vector<TokenId>>& out) {
  if (chosen_.empty())
    run_prompts();
  else
    step();
  const Tensor logits_BV = model_.logits(last_BD_);
  if (!logits_BV.isfinite().all().item<bool>())
    throw not_finite(model_, "generation: the model's logits are not finite", wider_dtype(model_));
  chosen_ = sampler_.next(logits_BV);
  for (size_t i = 0; i < left_.size(); ++i) {
    if (done_[i] || accept(left_[i], chosen_[i], out[static_cast<size_t>(left_[i])])) continue;
    done_[i] = true;
    ++n_done_;
    if (options_.on_end) options_.on_end(left_[i]);
  }
  const auto n_rows = static_cast<int64_t>(left_.size());
  if (n_done_ == n_rows) return false;
  if (n_done_ * kLeavingShare >= n_rows) {
    keep(places_to_keep(done_));
    done_.assign(left_.size(), false);
    n_done_ = 0;
  }
  return true;
}

void GenerateBatch::run_prompts() {
  std::vector<std::vector<TokenId>> prompts;
  for (const int64_t row : left_) prompts.push_back(rows_[static_cast<size_t>(row)].prompt);
  TokenBatch batch = make_batch(prompts);
  positions_B_ = torch::tensor(batch.sequence.lengths, torch::kLong);
  batch.sequence.record = &cache_;
  batch.sequence.outputs_BO = (positions_B_ - 1).unsqueeze(1);
  last_BD_ =
      model_.run_layers(model_.embed(batch.ids_BT, batch.sequence), batch.sequence, model_.all_layers()).squeeze(1);
}

/// Returns the number of positions of the padded prompts and the tokens after them. The last token is never run.
int64_t GenerateBatch::most_positions() const {
  int64_t prompt = 0, added = 0;
  for (const int64_t row : left_) {
    prompt = std::max(prompt, static_cast<int64_t>(rows_[static_cast<size_t>(row)].prompt.size()));
    added = std::max(added, rows_[static_cast<size_t>(row)].max_new_tokens);
  }
  return prompt + std::max<int64_t>(added - 1, 0);
}

/// Whether the row continues after `id`.
bool GenerateBatch::accept(int64_t row, TokenId id, std::vector<TokenId>& out) const {
  const bool ends = std::find(options_.eos_ids.begin(), options_.eos_ids.end(), id) != options_.eos_ids.end();
  const int64_t most = rows_[static_cast<size_t>(row)].max_new_tokens;
  if (ends || static_cast<int64_t>(out.size()) >= most) return false;
  out.push_back(id);
  if (options_.on_token) options_.on_token(row, id);
  if (options_.ends && options_.ends(row, out)) return false;
  return static_cast<int64_t>(out.size()) < most;
}

void GenerateBatch::keep(const std::vector<int64_t>& places) {
  cache_.keep(places);
  positions_B_ = positions_B_.index_select(0, to_index(places, positions_B_.device()));
  for (size_t i = 0; i < places.size(); ++i) {
    left_[i] = left_[static_cast<size_t>(places[i])];
    chosen_[i] = chosen_[static_cast<size_t>(places[i])];
  }
  left_.resize(places.size());
  chosen_.resize(places.size());
  sampler_.keep(places);
}

void GenerateBatch::step() {
  SequenceInfo sequence;
  sequence.lengths.assign(left_.size(), 1);
  sequence.positions_BT = positions_B_.unsqueeze(1);
  sequence.prefix = &cache_;
  sequence.record = &cache_;
  const Tensor ids_B1 = torch::tensor(chosen_, torch::kLong).unsqueeze(1);
  last_BD_ = model_.run_layers(model_.embed(ids_B1, sequence), sequence, model_.all_layers()).squeeze(1);
  positions_B_ = positions_B_ + 1;
}

namespace {

/// Returns a uniform number in [0, 1) from the engine's bits, because std::uniform_real_distribution differs between
/// libraries.
double uniform(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1.0p-53; }

/// How many of the first `probabilities`, which are in descending order, sum to at least `share` of all, and their sum.
struct Nucleus {
  int64_t count;
  double sum;
};
Nucleus nucleus(std::span<const double> probabilities, double share) {
  if (share >= 1) return {static_cast<int64_t>(probabilities.size()), 1.0};
  Nucleus kept{0, 0.0};
  for (const double probability : probabilities) {
    if (kept.count > 0 && kept.sum >= share) break;
    kept.sum += probability;
    ++kept.count;
  }
  return kept;
}

/// Returns, for each row [B, N] of cumulative sums, the first place whose sum is above levels [B, 1].
Tensor places_above(const Tensor& cumulative_BN, const Tensor& level_B1) {
  return at::searchsorted(cumulative_BN, level_B1, /*out_int32=*/false, /*right=*/true)
      .clamp_max(cumulative_BN.size(1) - 1);
}

std::vector<TokenId> on_host(const Tensor& ids_B1) {
  const Tensor host_B = ids_B1.squeeze(1).to(Placement::host()).contiguous();
  return {host_B.const_data_ptr<int64_t>(), host_B.const_data_ptr<int64_t>() + host_B.numel()};
}

}  // namespace

void SamplingOptions::check() const {
  std::vector<std::string> problems;
  if (!(temperature > 0 && temperature <= 1e6))
    problems.push_back(cat("temperature: ", temperature,
                           ": expected a number above 0 (towards 0 the likeliest token wins, towards infinity none)"));
  if (top_k < 0) problems.push_back(cat("top-k: ", top_k, ": expected 1 (the likeliest), more, or 0 (all tokens)"));
  if (!(top_p > 0 && top_p <= 1))
    problems.push_back(cat("top-p: ", top_p, ": expected a share of the probability, above 0 and at most 1"));
  if (!problems.empty()) throw ConfigError(join(problems, "; "));
}

Sampler::Sampler(const SamplingOptions& options, std::span<const int64_t> row_numbers) : options_(options) {
  options_.check();
  for (const int64_t row : row_numbers) {
    std::seed_seq sequence{options.seed, static_cast<uint64_t>(row)};
    engines_.emplace_back(sequence);
  }
}

std::vector<TokenId> Sampler::next(const Tensor& logits_BV) {
  Tensor precise_BV = logits_BV.to(at::kFloat);
  if (options_.temperature != 1 && !options_.is_greedy()) precise_BV = precise_BV / options_.temperature;
  if (options_.top_k > 0) return from_likeliest(precise_BV);
  return options_.top_p < 1 ? from_nucleus(precise_BV) : from_all(precise_BV);
}

void Sampler::keep(const std::vector<int64_t>& places) {
  std::vector<std::mt19937_64> kept;
  for (const int64_t place : places) kept.push_back(engines_[static_cast<size_t>(place)]);
  engines_ = std::move(kept);
}

/// Samples on the host, because there are few numbers in each row.
std::vector<TokenId> Sampler::from_likeliest(const Tensor& logits_BV) {
  const auto [values, indices] = logits_BV.topk(std::min(options_.top_k, logits_BV.size(1)), 1);
  const Tensor ids_BK = indices.to(Placement::host()).contiguous();
  const Tensor probabilities_BK = torch::softmax(values.to(Placement::host(), at::kDouble), 1).contiguous();
  const auto n_likeliest = static_cast<size_t>(ids_BK.size(1));
  std::vector<TokenId> chosen;
  for (int64_t row = 0; row < ids_BK.size(0); ++row) {
    const double* probabilities = probabilities_BK.const_data_ptr<double>() + row * ids_BK.size(1);
    const Nucleus kept = nucleus({probabilities, n_likeliest}, options_.top_p);
    double left = options_.is_greedy() ? 0.0 : uniform(engines_[static_cast<size_t>(row)]) * kept.sum;
    int64_t pick = 0;
    while (pick + 1 < kept.count && left >= probabilities[pick]) left -= probabilities[pick++];
    chosen.push_back(ids_BK.const_data_ptr<int64_t>()[row * ids_BK.size(1) + pick]);
  }
  return chosen;
}

/// Returns the first id whose cumulative probability is above a uniform number; on the logits' device.
std::vector<TokenId> Sampler::from_all(const Tensor& logits_BV) {
  const Tensor cumulative_BV = cumulative_sums(torch::softmax(logits_BV, 1));
  return on_host(places_above(cumulative_BV, draw(logits_BV.device()) * cumulative_BV.slice(1, -1)));
}

/// Samples in the same way among ids sorted by probability, of which only the first few can be chosen; on the logits'
/// device.
std::vector<TokenId> Sampler::from_nucleus(const Tensor& logits_BV) {
  const auto [values_BV, ids_BV] = logits_BV.sort(/*stable=*/true, 1, /*descending=*/true);
  const Tensor cumulative_BV = cumulative_sums(torch::softmax(values_BV, 1));
  // the last id of the nucleus is the first whose sum reaches its share
  const Tensor last_B1 =
      at::searchsorted(cumulative_BV, options_.top_p * cumulative_BV.slice(1, -1)).clamp_max(cumulative_BV.size(1) - 1);
  const Tensor place_B1 =
      places_above(cumulative_BV, draw(logits_BV.device()) * cumulative_BV.gather(1, last_B1)).minimum(last_B1);
  return on_host(ids_BV.gather(1, place_B1));
}

Tensor Sampler::draw(at::Device device) {
  std::vector<double> drawn;
  for (std::mt19937_64& engine : engines_) drawn.push_back(uniform(engine));
  return torch::tensor(drawn, torch::kDouble).unsqueeze(1).to(device);
}

int64_t sampling_bytes(const SamplingOptions& options, int64_t vocab_size, int64_t rows) {
  if (options.top_k > 0) return 0;
  // The softmax, and in f64 the inputs and outputs of sums by products; for a nucleus also the sorted logits with their
  // ids.
  return rows * vocab_size * (options.top_p < 1 ? 32 : 20);
}

}  // namespace lancet
