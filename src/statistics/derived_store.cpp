#include "lancet/statistics/derived_store.h"

#include <chrono>
#include <vector>

#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/models/tensor_reader.h"
#include "lancet/runtime/collectives.h"
#include "matrix_file.h"

namespace lancet {
namespace {

constexpr const char* kMeanDiagonal = "mean_diagonal";

}  // namespace

Metadata DerivedStore::to_metadata(const MomentFacts& facts) {
  return {{kTokensFact, std::to_string(facts.tokens)}, {kMeanDiagonal, exact_text(facts.mean_diagonal)}};
}

MatrixFile DerivedStore::open(int64_t layer) const {
  return MatrixFile::open(cache_file(layer), kind(), shape_of(layer));
}

FileMatrix DerivedStore::place_of(int64_t layer) const {
  return {.file = cache_file(layer), .device = device_of(layer)};
}

Tensor DerivedStore::load_matrix(int64_t layer) const {
  const auto read = [&] { return open(layer).load(); };
  return kept_ ? kept_->matrix(place_of(layer), read) : upload(read(), device_of(layer));
}

bool DerivedStore::has(int64_t layer) const {
  return is_whole(cache_file(layer), [&] {
    const MatrixFile file = open(layer);
    if (!kept_) return file.check();
    kept_->check(
        place_of(layer), file.bytes(), [&] { return file.load(); }, [&] { file.check(); });
  });
}

MomentFacts DerivedStore::facts(int64_t layer) const {
  const MatrixFile file = open(layer);
  return {static_cast<int64_t>(file.number(kTokensFact)), file.number(kMeanDiagonal)};
}

void DerivedStore::prepare(std::span<const int64_t> layers, Communicator& communicator) {
  std::vector<int64_t> missing;
  communicator.run_collectively("statistics", [&] {
    if (!communicator.is_root()) return;
    for (const int64_t layer : layers)
      if (!has(layer)) missing.push_back(layer);  // a damaged file is found now, not after hours of work
    // a pass over text may take hours: whether its results can be kept is found before
    if (!missing.empty()) check_writable(cache_file(missing.front()).parent_path(), "statistics.cache");
  });
  missing = broadcast_numbers(communicator, missing);
  made_ = {missing.begin(), missing.end()};
  collect_seconds_ = 0;
  if (missing.empty()) return;
  const auto begin = std::chrono::steady_clock::now();
  moments_.prepare(missing, communicator);
  collect_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  communicator.run_collectively("factors", [&] {
    if (!communicator.is_root()) return;
    Progress progress("factors", static_cast<int64_t>(missing.size()), "layers");
    for (const int64_t layer : missing) {
      make(layer);
      progress.advance();
    }
  });
}

}  // namespace lancet
