#include "lancet/edit/derived_store.h"

#include <vector>

#include "lancet/core/progress.h"

namespace lancet {

void DerivedStore::prepare(std::span<const int64_t> layers) {
  std::vector<int64_t> missing;
  for (const int64_t layer : layers) {
    if (std::filesystem::exists(cache_file(layer)))
      check(layer);  // a damaged file is found now, not after hours of work
    else
      missing.push_back(layer);
  }
  made_ = {missing.begin(), missing.end()};
  if (missing.empty()) return;
  moments_.prepare(missing);
  Progress progress("factors", static_cast<int64_t>(missing.size()), "layers");
  for (const int64_t layer : missing) {
    make(layer);
    progress.advance();
  }
}

}  // namespace lancet
