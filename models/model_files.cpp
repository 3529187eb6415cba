#include "lancet/models/model_files.h"

#include "lancet/checkpoint/quantize_config.h"
#include "lancet/core/bare_floats.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/models/weight_table.h"

namespace lancet {

ModelFiles open_model(const std::filesystem::path& folder, std::span<const std::string> ignore_config_keys) {
  Checkpoint checkpoint = Checkpoint::open(folder);
  ModelConfig config = load_model_config(checkpoint, ignore_config_keys);
  resolve_weights(config, checkpoint);  // a checkpoint that does not fit is refused before anything else is done
  std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(checkpoint.folder());
  if (tokenizer->vocab_size() > config.vocab_size)
    throw TokenizerError(cat(checkpoint.folder().string(), ": the tokenizer has ", tokenizer->vocab_size(),
                             " ids, config.json's vocab_size is ", config.vocab_size,
                             ": the files belong to different models"));
  return {std::move(checkpoint), std::move(config), std::move(tokenizer)};
}

DescribedModel describe_model(const std::filesystem::path& model, std::span<const std::string> ignore_config_keys) {
  namespace fs = std::filesystem;
  fs::path file = fs::is_regular_file(model) ? model : model / "config.json";
  if (!fs::exists(file)) file = Checkpoint::open(model).folder() / "config.json";  // a cache folder, or what is missing
  const std::string config = bare_floats_as_objects(read_text_file(file, "config.json"));
  return {file.parent_path(),
          parse_model_config(with_quantize_config(config, file.parent_path()), "", ignore_config_keys, file.string())};
}

}  // namespace lancet
