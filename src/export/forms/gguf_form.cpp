// A GGUF file with its edited matrices in a type of their own; all other tensors have their very bytes.
#include <torch/types.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "edited_tensors.h"
#include "forms.h"
#include "gguf/rows_of_file.h"
#include "lancet/checkpoint/gguf_export.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/io/model_file_names.h"
#include "lancet/models/stored_part.h"
#include "lancet/quant/gguf_blocks.h"

namespace lancet {
namespace {

const GgufWeight& source_of(const GgufSource& source, const std::string& name) {
  const auto found = std::ranges::find(source.weights, name, &GgufWeight::name);
  if (found == source.weights.end()) throw std::logic_error(name + ": is no weight of the GGUF file");
  return *found;
}

const GgufType& named(std::string_view name) { return *find_gguf_type(name); }

/// The type that an edited matrix gets. Throws: ConfigError where it cannot be written.
const GgufType& written_type(const GgufWeight& weight, GgufOutputType asked) {
  const GgufType& own = *weight.tensor->type;
  const auto refuse = [&](std::string_view why) {
    throw ConfigError(cat("output.gguf_type: ", weight.name, " is ", own.name, why));
  };
  switch (asked) {
    case GgufOutputType::kAuto:
      if (own.is_plain()) return own;
      [[fallthrough]];
    case GgufOutputType::kQ8_0:
      if (weight.tensor->shape.back() % named("Q8_0").block_numbers != 0)
        refuse(cat(" with rows of ", weight.tensor->shape.back(), ", no whole blocks of Q8_0: expected F16 or BF16"));
      return named("Q8_0");
    case GgufOutputType::kF16:
      return named("F16");
    case GgufOutputType::kBf16:
      return named("BF16");
    case GgufOutputType::kF32:
      return named("F32");
    case GgufOutputType::kOwn:
      break;
  }
  if (!can_encode(own))
    refuse(cat(", which lancet does not write: expected Q8_0, F16 or BF16, or a file of one of ", encodable_types()));
  return own;
}

class GgufForm final : public OutputForm {
 public:
  GgufForm(const ModelFiles& files, GgufOutputType type)
      : files_(files), type_(type), table_(resolve_weights(files.config, files.checkpoint)) {}

  void prepare(const EditContext&, std::span<const EditRequest> edited, Entries) override { n_edits_ = edited.size(); }

  Tensor read_back(const WeightTransaction::Entry& entry) override {
    encoded_.erase(entry.id);
    if (is_as_before(entry)) return OutputForm::read_back(entry);
    const WeightSpec& spec = spec_of(entry.id);
    const std::vector<EncodedPart>& parts = encoded_[entry.id] = encode(spec, entry);
    std::vector<Tensor> read;
    for (const EncodedPart& part : parts) read.push_back(decode_rows_of(part.bytes, *part.type));
    const Tensor whole = read.size() == 1 ? read.front() : torch::cat(read, spec.parts_axis());
    return whole.to(entry.master.device(), entry.master.scalar_type());
  }

  void write(Entries entries, const std::filesystem::path& folder) const override {
    std::map<std::string, GgufExchange> exchanged;
    for (const WeightTransaction::Entry& entry : entries) {
      if (is_as_before(entry)) continue;
      const auto known = encoded_.find(entry.id);
      // a session writes without having read back
      const std::vector<EncodedPart> parts = known == encoded_.end() ? encode(spec_of(entry.id), entry) : known->second;
      for (const EncodedPart& part : parts) {
        GgufExchange& exchange = exchanged[part.weight->tensor->name];
        exchange.type = part.type;
        const Tensor bytes = rows_of_file(part.bytes, part.weight->change, part.weight->heads);  // experts come in turn
        const auto* const from = static_cast<const std::byte*>(bytes.const_data_ptr());
        exchange.bytes.insert(exchange.bytes.end(), from, from + bytes.nbytes());
      }
    }
    std::vector<GgufAddition> additions{{kGgufVersionKey, std::string(kVersion)},
                                        {"lancet.base_hash", files_.checkpoint.content_hash()}};
    if (n_edits_) additions.emplace_back("lancet.edits", static_cast<uint32_t>(*n_edits_));
    export_gguf(files_.checkpoint, exchanged, additions, folder / kGgufFile);
  }

  std::string read_back_text() const override {
    return "the weights as they are read from the output, edited ones in the types that they have there";
  }

 private:
  struct EncodedPart {
    const GgufWeight* weight;
    const GgufType* type;
    Tensor bytes;  ///< rows as the model has them
  };

  const WeightSpec& spec_of(WeightId id) const {
    return *std::ranges::find_if(table_, [&](const WeightSpec& spec) { return spec.id == id; });
  }

  static bool is_as_before(const WeightTransaction::Entry& entry) {
    return entry.master.equal(entry.base.to(entry.master.device(), entry.master.scalar_type()));
  }

  std::vector<EncodedPart> encode(const WeightSpec& spec, const WeightTransaction::Entry& entry) const {
    std::vector<EncodedPart> encoded;
    const std::vector<Tensor> parts = stored_parts(spec, entry.master);
    for (size_t i = 0; i < parts.size(); ++i) {
      const GgufWeight& weight = source_of(*files_.checkpoint.gguf(), spec.stored.tensors[i]);
      const GgufType& type = written_type(weight, type_);
      encoded.push_back({&weight, &type, encode_blocks(parts[i], type, spec.name)});
    }
    return encoded;
  }

  const ModelFiles& files_;
  GgufOutputType type_;
  std::vector<WeightSpec> table_;
  std::optional<size_t> n_edits_;
  std::map<WeightId, std::vector<EncodedPart>> encoded_;  ///< what read_back() last made of each changed weight
};

}  // namespace

void check_gguf_output(const OutputOptions& asked, const ModelFiles& files, const std::vector<WeightId>& edited) {
  for (const WeightSpec& spec : resolve_weights(files.config, files.checkpoint)) {
    if (std::ranges::find(edited, spec.id) == edited.end()) continue;
    if (spec.stored.layout == Layout::kLatentParts)
      throw ConfigError(cat("output.format: gguf: ", spec.name, ": lancet does not write the two tensors in which the ",
                            "file has it: choose other matrices, or edit the model's safetensors"));
    if (!spec.is_whole())
      throw ConfigError(cat("output.format: gguf: ", spec.name,
                            " shares its tensor with other weights, which would change with it: expected adapter"));
    for (const std::string& name : spec.stored.tensors)
      static_cast<void>(written_type(source_of(*files.checkpoint.gguf(), name), asked.gguf_type));
  }
}

std::unique_ptr<OutputForm> make_gguf_form(const ModelFiles& files, GgufOutputType type) {
  return std::make_unique<GgufForm>(files, type);
}

}  // namespace lancet
