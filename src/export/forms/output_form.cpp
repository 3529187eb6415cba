#include "lancet/export/output_form.h"

#include <torch/types.h>
#include <algorithm>
#include <array>
#include <stdexcept>

#include "edited_tensors.h"
#include "forms.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_io.h"
#include "lancet/models/weight_table.h"
#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

/// Names among the weights that are edited.
struct EditedKinds {
  std::string quantised;     ///< the first such one's name; empty: there is none
  bool has_experts = false;  ///< quantised ones in one tensor, which no adapter changes
  std::string part;          ///< name of one that shares a quantised tensor with others
  std::string other;         ///< name of one whose keys have no statistics

  bool has_quantised() const { return !quantised.empty(); }
};

EditedKinds kinds_of(const ModelFiles& files, const std::vector<WeightId>& edited) {
  EditedKinds kinds;
  for (const WeightSpec& spec : resolve_weights(files.config, files.checkpoint)) {
    if (std::ranges::find(edited, spec.id) == edited.end()) continue;
    if (spec.packed.empty()) continue;
    if (!kinds.has_quantised()) kinds.quantised = spec.name;
    kinds.has_experts = kinds.has_experts || spec.is_sliced();
    if (!spec.is_whole() && !spec.is_sliced()) kinds.part = spec.name;
    if (spec.id.kind != WeightKind::kDown) kinds.other = spec.name;
  }
  return kinds;
}

std::string where(const ModelFiles& files, std::string_view format) {
  return cat("output.format: ", format, ": ", files.checkpoint.folder().string(), ": ");
}

void check_quantised(const OutputOptions& asked, const ModelFiles& files, const EditedKinds& kinds) {
  if (!kinds.part.empty())
    throw ConfigError(cat(where(files, "quantised"), kinds.part,
                          " shares its quantised tensor with other weights, which would change with it: expected "
                          "mixed or adapter"));
  if (asked.rounding != OutputRounding::kNearest && !kinds.other.empty())
    throw ConfigError(cat("output.rounding: ", kinds.other,
                          " is no down projection, and statistics are of their keys alone: expected nearest, or a "
                          "format of mixed or adapter"));
}

OutputOptions resolve_gguf_output(const OutputOptions& asked, const ModelFiles& files,
                                  const std::vector<WeightId>& edited) {
  OutputOptions resolved = asked;
  if (asked.format == OutputFormat::kAuto) resolved.format = OutputFormat::kGguf;
  if (resolved.format != OutputFormat::kGguf && resolved.format != OutputFormat::kAdapter)
    throw ConfigError(cat(where(files, OutputSpec::kFormats[static_cast<size_t>(asked.format)]),
                          "the model is a GGUF file: expected gguf or adapter"));
  if (asked.place.model_file && resolved.format != OutputFormat::kGguf)
    throw ConfigError(cat("output.dir: ", asked.place.model_file->string(),
                          " names a GGUF file, and output.format is adapter, which is a folder: name a folder"));
  if (resolved.format == OutputFormat::kGguf) check_gguf_output(resolved, files, edited);
  return resolved;
}

}  // namespace

OutputOptions resolve_output(const OutputOptions& asked, const ModelFiles& files, const std::vector<WeightId>& edited) {
  const EditedKinds kinds = kinds_of(files, edited);
  if (files.checkpoint.gguf() != nullptr) return resolve_gguf_output(asked, files, edited);
  if (asked.format == OutputFormat::kGguf)
    throw ConfigError(cat(where(files, "gguf"),
                          "the model is no GGUF file: expected a model of one, or another format, ",
                          "whose output llama.cpp's convert_hf_to_gguf.py converts"));
  if (asked.place.model_file)
    throw ConfigError(cat("output.dir: ", asked.place.model_file->string(), " names a GGUF file, and the model, ",
                          files.checkpoint.folder().string(), ", is none: name a folder"));
  OutputOptions resolved = asked;
  if (asked.format == OutputFormat::kAuto)
    resolved.format = kinds.has_experts       ? OutputFormat::kMixed
                      : kinds.has_quantised() ? OutputFormat::kAdapter
                                              : OutputFormat::kCheckpoint;
  if (asked.format == OutputFormat::kCheckpoint && kinds.has_quantised())
    throw ConfigError(cat(where(files, "checkpoint"), kinds.quantised, " is quantised (",
                          files.config.quantised->method(),
                          "): expected adapter, mixed (it is written in full precision) or quantised (in the model's "
                          "own format)"));
  const bool is_of_quantised = asked.format == OutputFormat::kMixed || asked.format == OutputFormat::kQuantised;
  if (is_of_quantised && !kinds.has_quantised())
    throw ConfigError(cat(where(files, asked.format == OutputFormat::kMixed ? "mixed" : "quantised"),
                          "none of the weights that are edited is quantised: expected checkpoint or adapter"));
  if (asked.format == OutputFormat::kQuantised) check_quantised(asked, files, kinds);
  return resolved;
}

bool needs_moments(const OutputOptions& resolved) {
  return resolved.format == OutputFormat::kQuantised && resolved.rounding != OutputRounding::kNearest;
}

Tensor OutputForm::read_back(const WeightTransaction::Entry& entry) {
  return entry.master.to(entry.base.scalar_type()).to(entry.master.scalar_type());
}

std::string OutputForm::read_back_text() const { return "the weights rounded to the type they are exported in"; }

std::unique_ptr<OutputForm> make_output_form(OutputParts parts) {
  switch (parts.options.format) {
    case OutputFormat::kAdapter:
      return make_adapter_form(parts.files);
    case OutputFormat::kMixed:
      return make_mixed_form(parts.files);
    case OutputFormat::kQuantised:
      return make_quantised_form(std::move(parts));
    case OutputFormat::kGguf:
      return make_gguf_form(parts.files, parts.options.gguf_type);
    case OutputFormat::kAuto:
    case OutputFormat::kCheckpoint:
      break;
  }
  return make_checkpoint_form(parts.files);
}

void write_edits(const ModelFiles& files, const EditHistory& history, const std::filesystem::path& folder,
                 const HistoryWriting& options) {
  // A folder of its own: tools that load every *.safetensors of a model folder must not find it.
  make_folders(folder / kEditsFolder);
  history.write(folder / kEditsFolder, files.config, options);
  std::string requests;
  for (const EditRequest& request : history.journal().requests()) requests += to_json_line(request) + "\n";
  write_text_file(folder / "requests.jsonl", requests);
}

void EditedTensors::add(const WeightSpec& spec, const WeightTransaction::Entry& entry) {
  const std::vector<Tensor> parts = stored_parts(spec, entry.master.to(Placement::host(), entry.base.scalar_type()));
  const std::vector<Tensor> before = stored_parts(spec, entry.base);
  for (size_t i = 0; i < parts.size(); ++i) {
    // An expert that no request reaches keeps its bytes, the signs of its zeros included; a quantised one does not:
    // programs load the experts of a layer in one format.
    if (spec.packed.empty() && parts.size() > 1 && parts[i].equal(before[i].to(Placement::host()))) continue;
    put_stored_part(place(spec, i, parts[i].scalar_type()), spec, parts[i]);
  }
}

void EditedTensors::add_as_it_is(const WeightSpec& spec) {
  const at::ScalarType type = to_scalar_type(files_.config.dtype);
  const std::vector<Tensor> parts = stored_parts(spec, read_stored(files_.checkpoint, spec, type));
  for (size_t i = 0; i < parts.size(); ++i) put_stored_part(place(spec, i, type), spec, parts[i]);
}

const Tensor& EditedTensors::place(const WeightSpec& spec, size_t part, at::ScalarType type) {
  Tensor& stored = tensors_[spec.stored.tensors[part]];
  if (stored.defined()) return stored;
  if (spec.is_whole() || spec.is_sliced())
    stored = torch::empty(spec.stored.shape, type);
  else if (spec.packed.empty())
    stored = to_tensor(files_.checkpoint.view(spec.stored.tensors[part])).clone();
  else
    stored = read_packed(files_.checkpoint, spec.packed[part], Placement::host()).unpack(type);
  return stored;
}

Tensor stored_weight(const ModelFiles& files, const CausalLM& model, WeightId id) {
  for (const WeightSpec& spec : resolve_weights(files.config, files.checkpoint)) {
    if (spec.id != id) continue;
    const at::ScalarType type = to_scalar_type(
        spec.packed.empty() ? files.checkpoint.info(spec.stored.tensors.front()).dtype : files.config.dtype);
    if (model.weight(id).scalar_type() == type) return model.weight(id);
    const std::optional<TensorView> stored = stored_view(files.checkpoint, spec);
    if (!stored) return read_stored(files.checkpoint, spec, type).contiguous().clone();
    const std::array read{TensorRead{*stored, Placement::host(), type}};
    return read_tensors(read, [](int64_t) {}).front();
  }
  throw std::logic_error("no such weight: " + weight_name(files.config, id));
}

}  // namespace lancet
