#include "generate_batch.h"

#include <torch/types.h>

#include <algorithm>
#include <utility>

#include "lancet/models/finite.h"

namespace lancet {
namespace {

/// Done rows leave when they are an eighth of the batch: leaving moves others' keys and values into their places.
constexpr int64_t kLeavingShare = 8;

/// The rows' numbers among all, by which random numbers go.
std::vector<int64_t> row_numbers(const std::vector<int64_t>& rows, int64_t first_row) {
  std::vector<int64_t> numbers;
  for (const int64_t row : rows) numbers.push_back(first_row + row);
  return numbers;
}

/// Rows that go on keep their places, but for the last ones, which take those of rows that are done.
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

/// Returns how many positions the prompts, padded, and the tokens after them take: the last is never run.
int64_t GenerateBatch::most_positions() const {
  int64_t prompt = 0, added = 0;
  for (const int64_t row : left_) {
    prompt = std::max(prompt, static_cast<int64_t>(rows_[static_cast<size_t>(row)].prompt.size()));
    added = std::max(added, rows_[static_cast<size_t>(row)].max_new_tokens);
  }
  return prompt + std::max<int64_t>(added - 1, 0);
}

/// Whether the row goes on after `id`.
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

}  // namespace lancet
