#include "lancet/statistics/statistics_store.h"

#include <torch/types.h>

#include <algorithm>

#include "lancet/core/hash.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/core/words.h"
#include "lancet/models/tensor_reader.h"
#include "lancet/runtime/collectives.h"
#include "lancet/statistics/gradient_moments.h"
#include "matrix_file.h"

namespace lancet {
namespace {

constexpr MatrixKind kCovariance{{"lancet-covariance-5"}, "upper_rows", "covariance", MatrixShape::kSymmetric};
constexpr MatrixKind kGradients{
    {"lancet-gradient-moments-1"}, "upper_rows", "second moment of gradients", MatrixShape::kSymmetric};

const MatrixKind& kind_of(MomentSide side) { return side == MomentSide::kKeys ? kCovariance : kGradients; }

/// Returns the key of one pass over several layers. `chunk_tokens` orders its sums.
std::string pass_key(std::span<const std::filesystem::path> cache_files, int64_t chunk_tokens) {
  ContentHash hash;
  hash.add(chunk_tokens);
  for (const std::filesystem::path& file : cache_files) hash.add(file.filename().string());
  return hash.hex();
}

/// Returns the key of one rank's share of a pass: the shares of another number of ranks are other chunks.
std::string share_key(const std::string& pass, const Communicator& communicator) {
  if (communicator.size() == 1) return pass;
  return cat(pass, ".rank-", communicator.rank(), "-of-", communicator.size());
}

/// Collective: what every rank has room for.
int64_t agreed_chunk_tokens(const CausalLM& model, MomentSide side, std::span<const int64_t> layers,
                            Communicator& communicator) {
  if (side == MomentSide::kGradients)
    return gradient_chunk_tokens(model.config(), model.placement().weight_dtype(), layers.front());
  int64_t least = statistics_chunk_tokens(model.config(), model.placement(), layers);
  if (communicator.size() == 1) return least;
  for (const std::vector<int64_t>& tokens : gather_numbers(communicator, {least}))
    least = std::min(least, tokens.front());
  return least;
}

}  // namespace

StatisticsText text_of(const CorpusTokens& corpus) {
  ContentHash hash;
  for (const auto& document : corpus.documents) hash.add(std::as_bytes(std::span(document)));
  return {hash.hex(), [&corpus](Communicator& communicator) { return broadcast_corpus(communicator, corpus); },
          corpus.tokens};
}

StatisticsStore::StatisticsStore(const CausalLM& model, const Checkpoint& checkpoint, StatisticsText text,
                                 std::filesystem::path cache, MomentSide side)
    : model_(model),
      text_(std::move(text)),
      keys_(text_.content_key, checkpoint, model.config(), model.placement().weight_dtype(), model.quantise_rule()),
      side_(side),
      cache_(std::move(cache)) {}

std::string CovarianceKeys::of(int64_t layer, MomentSide side) const {
  ContentHash hash;
  hash.add(kind_of(side).format.name)
      .add(text_key_)
      .add(checkpoint_.config_text())
      .add(at::toString(dtype_))
      .add(layer);
  for (const WeightSpec& spec : resolve_weights(config_, checkpoint_)) {
    if (side == MomentSide::kKeys && !shapes_keys(config_, spec.id, layer)) continue;
    if (quantise_rule_.quantises(spec)) hash.add(quantise_rule_.key(spec));
    for (const std::string& name : spec.tensor_names()) {
      std::string& weight = weight_hashes_[name];
      if (weight.empty()) {
        ContentHash bytes;
        checkpoint_.view(name).add_to(bytes);
        weight = bytes.hex();
      }
      hash.add(weight);
    }
  }
  return hash.hex();
}

std::filesystem::path StatisticsStore::cache_file(int64_t layer) const {
  return cache_ / (content_key(layer) + ".safetensors");
}

/// Says what work there is, before anything of it is begun.
void StatisticsStore::tell_work(size_t n_layers) const {
  const std::string text = text_.tokens > 0 ? cat(text_.tokens, " tokens of text") : "the text";
  const std::string over =
      text_.making.empty() ? cat("one pass over ", text) : cat(text_.making, ", and one pass over them");
  const std::string how = side_ == MomentSide::kKeys ? "" : ", with backward,";
  log_line(cat("statistics  not in the cache yet: ", over, how, " for ", counted(n_layers, "layer"),
               "; this happens once, later edits find them in ", cache_.string()));
}

void StatisticsStore::prepare(std::span<const int64_t> layers, Communicator& communicator) {
  std::vector<int64_t> missing;
  std::vector<std::filesystem::path> files, all_files;
  std::string pass;
  const int64_t chunk_tokens = agreed_chunk_tokens(model_, side_, layers, communicator);
  communicator.run_collectively("statistics", [&] {
    if (!communicator.is_root()) return;
    for (const int64_t layer : layers) {
      all_files.push_back(cache_file(layer));
      if (has_matrix(all_files.back(), kind_of(side_), shape(layer))) continue;
      missing.push_back(layer);
      files.push_back(all_files.back());
    }
    pass = pass_key(files, chunk_tokens);
    // of a pass over all of these that was killed when some of its results were in the cache: nobody goes on with it
    if (missing.size() < layers.size()) PartialSums::remove_all(cache_, pass_key(all_files, chunk_tokens));
    if (!missing.empty()) tell_work(missing.size());
  });
  missing = broadcast_numbers(communicator, missing);
  collected_ = {missing.begin(), missing.end()};
  if (missing.empty()) return;
  pass = communicator.broadcast(std::move(pass));
  PartialSums saves(cache_, share_key(pass, communicator), save_every_s_);
  const auto collect = side_ == MomentSide::kKeys ? collect_covariances : collect_gradient_moments;
  const std::vector<Covariance> fresh =
      collect(model_, text_.read(communicator), missing, communicator, {chunk_tokens, &saves});
  communicator.run_collectively("statistics", [&] {
    for (size_t i = 0; i < files.size(); ++i)  // root's alone
      write_matrix(files[i], kind_of(side_), fresh[i].moment_FF, {{kTokensFact, std::to_string(fresh[i].tokens)}});
  });
  PartialSums::remove_all(cache_, pass);  // only now that the cache has the results
}

Covariance StatisticsStore::load(int64_t layer) const {
  const MatrixFile file = MatrixFile::open(cache_file(layer), kind_of(side_), shape(layer));
  return {upload(file.load(), model_.placement().solve_device(layer)), static_cast<int64_t>(file.number(kTokensFact))};
}

}  // namespace lancet
