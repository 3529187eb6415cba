#include "lancet/edit/factor_store.h"

#include <torch/types.h>

#include <chrono>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/edit/solvers.h"
#include "lancet/runtime/collectives.h"
#include "matrix_file.h"

namespace lancet {
namespace {

/// L^T by rows, which is L by columns.
constexpr MatrixKind kFactor{"lancet-factor-1", "upper", "factor of a covariance"};
constexpr const char* kTokens = "tokens";
constexpr const char* kMeanDiagonal = "mean_diagonal";

}  // namespace

FactorStore::FactorStore(MomentSource& moments, const Placement& placement, int64_t size, std::filesystem::path cache,
                         double ridge)
    : moments_(moments), placement_(placement), size_(size), cache_(std::move(cache)), ridge_(ridge) {}

std::filesystem::path factor_file(const std::filesystem::path& cache, const std::string& content_key, double ridge) {
  return cache / cat(content_key, ".factor-", exact_text(ridge), ".safetensors");
}

std::filesystem::path FactorStore::cache_file(int64_t layer) const {
  return factor_file(cache_, moments_.content_key(layer), ridge_);
}

void FactorStore::prepare(std::span<const int64_t> layers, Communicator& communicator) {
  std::vector<int64_t> missing;
  communicator.together("statistics", [&] {
    if (!communicator.is_root()) return;
    for (const int64_t layer : layers) {
      if (std::filesystem::exists(cache_file(layer)))
        load(layer);  // a damaged file is found now, not after hours of work
      else
        missing.push_back(layer);
    }
  });
  missing = broadcast_numbers(communicator, missing);
  factored_ = {missing.begin(), missing.end()};
  collect_seconds_ = 0;
  if (missing.empty()) return;
  const auto begin = std::chrono::steady_clock::now();
  moments_.prepare(missing, communicator);
  collect_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  communicator.together("factors", [&] {
    if (!communicator.is_root()) return;
    Progress progress("factors", static_cast<int64_t>(missing.size()), "layers");
    for (const int64_t layer : missing) {
      factor(layer);
      progress.advance();
    }
  });
}

void FactorStore::factor(int64_t layer) const {
  FactorFacts facts;
  const auto covariance = [&] {
    Covariance moments = moments_.load(layer);
    const double size = static_cast<double>(moments.moment_FF.size(0));
    facts = {moments.tokens, moments.moment_FF.trace().item<double>() / size};
    return moments.moment_FF.to(placement_.solve_device(layer));
  };
  const Tensor lower_FF = factor_covariance(covariance, ridge_, cat("layer ", layer));
  write_matrix(cache_file(layer), kFactor, lower_FF.t(),
               {{kTokens, std::to_string(facts.tokens)}, {kMeanDiagonal, exact_text(facts.mean_diagonal)}});
}

Tensor FactorStore::load(int64_t layer) const {
  const MatrixFile file = map_matrix(cache_file(layer), kFactor, size_);
  const Tensor diagonal_F = file.matrix.diagonal();
  if (!(diagonal_F > 0).logical_and(diagonal_F.isfinite()).all().item<bool>())
    throw CheckpointError(cat(file.path.string(), ": expected positive numbers on the factor's diagonal, got others",
                              ": remove the file, it will be made again"));
  return file.matrix.to(placement_.solve_device(layer)).t();
}

FactorFacts FactorStore::facts(int64_t layer) const {
  const MatrixFile file = map_matrix(cache_file(layer), kFactor, size_);
  return {static_cast<int64_t>(file.number(kTokens)), file.number(kMeanDiagonal)};
}

}  // namespace lancet
