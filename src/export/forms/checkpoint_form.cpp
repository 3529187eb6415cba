// The model with its edited weights: in the types and places that the checkpoint has them in, or, where it has them
// quantised, in full precision.
#include <torch/types.h>

#include <map>
#include <set>

#include "edited_tensors.h"
#include "forms.h"
#include "lancet/checkpoint/checkpoint_export.h"
#include "lancet/core/strings.h"
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
    const std::vector<WeightSpec> table = resolve_weights(files_.config, files_.checkpoint);
    const std::set<std::string> units = edited_units(table, entries);
    std::set<std::string> others;
    for (const WeightSpec& spec : table) {
      const WeightTransaction::Entry* entry = find(entries, spec.id);
      if (entry != nullptr)
        edited.add(spec, *entry);
      else if (spec.is_sliced() && units.contains(unit_of(spec.stored.tensors.front())))
        edited.add_as_it_is(spec);
      for (size_t i = 0; i < spec.packed.size(); ++i) {
        const std::string& name = spec.stored.tensors[spec.is_sliced() ? 0 : i];
        if (!units.contains(unit_of(name))) {
          others.insert(unit_of(name));
          continue;
        }
        layouts[name] = weight_spec(files_.config, spec.id).stored.layout;
        packed[name] = tensors_of_packing(*files_.config.quantised, files_.checkpoint, spec.packed[i]);
      }
    }
    std::vector<TensorSource> replaced;
    std::vector<TensorExchange> exchanged;
    std::vector<Tensor> turned;  // [in, out], as the family stores its own
    for (const auto& [name, tensor] : edited.all()) {
      if (!packed.contains(name)) {
        replaced.push_back(to_source(name, tensor));
        continue;
      }
      turned.push_back(layouts.at(name) == Layout::kColumns ? tensor.t().contiguous() : tensor);
      exchanged.push_back({packed.at(name), {to_source(name, turned.back())}});
    }
    const std::vector<std::string> modules(units.begin(), units.end()), kept(others.begin(), others.end());
    export_checkpoint(files_.checkpoint,
                      {.replaced = replaced,
                       .exchanged = exchanged,
                       .config_text = with_unquantised(files_.checkpoint.config_text(), modules, kept)},
                      folder);
  }

 private:
  std::string unit_of(const std::string& tensor) const { return files_.config.quantised->unit_of(tensor); }

  /// Modules of which any packed weight is edited: no other matrix of theirs stays packed.
  std::set<std::string> edited_units(const std::vector<WeightSpec>& table, Entries entries) const {
    std::set<std::string> units;
    for (const WeightSpec& spec : table)
      if (!spec.packed.empty() && find(entries, spec.id) != nullptr)
        for (const std::string& name : spec.stored.tensors) units.insert(unit_of(name));
    return units;
  }

  const ModelFiles& files_;
};

}  // namespace

std::unique_ptr<OutputForm> make_checkpoint_form(const ModelFiles& files) {
  if (files.checkpoint.gguf() != nullptr) return make_gguf_form(files, GgufOutputType::kAuto);
  return std::make_unique<CheckpointForm>(files);
}

std::unique_ptr<OutputForm> make_mixed_form(const ModelFiles& files) {
  if (files.checkpoint.gguf() != nullptr) return make_gguf_form(files, GgufOutputType::kAuto);
  return std::make_unique<MixedForm>(files);
}

}  // namespace lancet
