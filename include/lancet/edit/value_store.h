// Values of finished batches on disk, so that a killed job goes on behind them. A batch is found again only by all that
// its values depend on: the model's bytes, the type it runs in, the layer, the options, the batch's token ids.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/edit/values.h"

namespace lancet {

class ValueStore {
 public:
  /// `model_key`: names the weights as they are, the configuration and the type that they run in. Nothing is written
  /// before save().
  ValueStore(std::filesystem::path folder, std::string model_key)
      : folder_(std::move(folder)), model_key_(std::move(model_key)) {}

  /// nullopt when there is none; a damaged file is as good as none.
  std::optional<OptimizedValues> load(const std::vector<const PreparedRequest*>& batch, int64_t layer,
                                      const ValueOptions& options) const;
  /// Throws: CheckpointError when the disk refuses.
  void save(const std::vector<const PreparedRequest*>& batch, int64_t layer, const ValueOptions& options,
            const OptimizedValues& values) const;
  /// Removes everything: the job is done.
  void clear() const;

 private:
  std::filesystem::path file(const std::vector<const PreparedRequest*>& batch, int64_t layer,
                             const ValueOptions& options) const;

  std::filesystem::path folder_;
  std::string model_key_;
};

}  // namespace lancet
