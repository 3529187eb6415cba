// The model with its edited weights: in the types and places that the checkpoint has them in, or, where it has them
// quantised, in full precision.
#include <torch/types.h>

#include <map>

#include "edited_tensors.h"
#include "forms.h"
#include "lancet/checkpoint/checkpoint_export.h"
#include "lancet/core/strings.h"
#include "lancet/models/module_name.h"
#include "lancet/models/tensor_io.h"
#include "lancet/models/weight_table.h"
#include "lancet/quant_formats/find_packed.h"
#include "lancet/quant_formats/unquantised_modules.h"

namespace lancet {
namespace {

const WeightTransaction::Entry* find(OutputForm::Entries entries, WeightId id) {
  for (const WeightTransaction::Entry& entry : entries)
    if (entry.id == id) return &entry;
  return nullptr;
}

class CheckpointForm final : public OutputForm {
 public:
  explicit CheckpointForm(const ModelFiles& files) : files_(files) {}

  void write(Entries entries, const std::filesystem::path& folder) const override {
    EditedTensors edited(files_);
    for (const WeightSpec& spec : resolve_weights(files_.config, files_.checkpoint))
      if (const WeightTransaction::Entry* entry = find(entries, spec.id)) edited.add(spec, *entry);
    std::vector<TensorSource> sources;
    for (const auto& [name, tensor] : edited.all()) sources.push_back(to_source(name, tensor));
    export_checkpoint(files_.checkpoint, {.replaced = sources}, folder);
  }

 private:
  const ModelFiles& files_;
};

class MixedForm final : public OutputForm {
 public:
  explicit MixedForm(const ModelFiles& files) : files_(files) {}

  void write(Entries entries, const std::filesystem::path& folder) const override {
    EditedTensors edited(files_);
    std::map<std::string, std::vector<std::string>> packed;  // of each such tensor the parts that it replaces
    std::map<std::string, Layout> layouts;
    std::vector<std::string> others;
    for (const WeightSpec& spec : resolve_weights(files_.config, files_.checkpoint)) {
      const WeightTransaction::Entry* entry = find(entries, spec.id);
      if (entry != nullptr) edited.add(spec, *entry);
      for (size_t i = 0; i < spec.packed.size(); ++i) {
        const std::string& name = spec.stored.tensors[i];
        if (entry == nullptr) {
          others.emplace_back(module_of(name));
          continue;
        }
        layouts[name] = weight_spec(files_.config, spec.id).stored.layout;
        packed[name] = tensors_of_packing(*files_.config.quantised, files_.checkpoint, spec.packed[i]);
      }
    }
    std::vector<TensorSource> replaced;
    std::vector<TensorExchange> exchanged;
    std::vector<std::string> modules;
    std::vector<Tensor> turned;  // [in, out], as the family stores its own
    for (const auto& [name, tensor] : edited.all()) {
      if (!packed.contains(name)) {
        replaced.push_back(to_source(name, tensor));
        continue;
      }
      turned.push_back(layouts.at(name) == Layout::kColumns ? tensor.t().contiguous() : tensor);
      exchanged.push_back({packed.at(name), {to_source(name, turned.back())}});
      modules.emplace_back(module_of(name));
    }
    std::erase_if(others, [&](const std::string& name) { return std::ranges::find(modules, name) != modules.end(); });
    export_checkpoint(files_.checkpoint,
                      {.replaced = replaced,
                       .exchanged = exchanged,
                       .config_text = with_unquantised(files_.checkpoint.config_text(), modules, others)},
                      folder);
  }

 private:
  const ModelFiles& files_;
};

}  // namespace

std::unique_ptr<OutputForm> make_checkpoint_form(const ModelFiles& files) {
  return std::make_unique<CheckpointForm>(files);
}

std::unique_ptr<OutputForm> make_mixed_form(const ModelFiles& files) { return std::make_unique<MixedForm>(files); }

}  // namespace lancet
