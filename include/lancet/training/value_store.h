// Values of finished batches on disk, so that a killed job goes on after them. A batch is found again only by all that
// its values depend on: the model's bytes, the type it runs in, the layer, the options, the batch's token ids.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lancet/training/values.h"

namespace lancet {

class ValueStore {
 public:
  /// What values depend on besides their batch.
  struct Setting {
    std::string weights_key;  ///< what current_weights() gives
    int64_t layer = 0;
    const ValueOptions& options;
  };

  /// `model_key`: names the unedited weights, the configuration and the type that they run in; `changes_key`: what has
  /// been changed of the weights at the moment of the call. Nothing is written before save().
  ValueStore(std::filesystem::path folder, std::string model_key, std::function<std::string()> changes_key = {})
      : folder_(std::move(folder)), model_key_(std::move(model_key)), changes_key_(std::move(changes_key)) {}

  /// The weights as they are now. Not from several threads.
  std::string current_weights() const { return model_key_ + (changes_key_ ? changes_key_() : ""); }

  /// nullopt when there is none; a damaged file is as good as none.
  std::optional<OptimizedValues> load(const std::vector<const PreparedRequest*>& batch, const Setting& setting) const;
  /// Throws: CheckpointError when the disk refuses.
  void save(const std::vector<const PreparedRequest*>& batch, const Setting& setting,
            const OptimizedValues& values) const;
  /// Removes everything: the job is done.
  void clear() const;

 private:
  std::filesystem::path file(const std::vector<const PreparedRequest*>& batch, const Setting& setting) const;

  std::filesystem::path folder_;
  std::string model_key_;
  std::function<std::string()> changes_key_;
};

}  // namespace lancet
