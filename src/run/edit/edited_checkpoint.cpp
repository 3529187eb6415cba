#include "edited_checkpoint.h"

#include <torch/types.h>

#include <map>
#include <string>
#include <vector>

#include "earlier_output.h"
#include "lancet/deltas/delta_file.h"
#include "lancet/io/checkpoint_export.h"
#include "lancet/io/files.h"
#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

void export_model(const ModelFiles& files, std::span<const WeightTransaction::Entry> entries,
                  const std::filesystem::path& folder) {
  std::map<std::string, Tensor> edited;  // by the name of the tensor that the weight, or several of them, are stored in
  for (const WeightSpec& spec : resolve_weights(files.config, files.checkpoint)) {
    for (const WeightTransaction::Entry& entry : entries) {
      if (entry.id != spec.id) continue;
      const std::vector<Tensor> parts =
          stored_parts(spec, entry.master.to(Placement::host(), entry.base.scalar_type()));
      const std::vector<Tensor> before = stored_parts(spec, entry.base);
      for (size_t i = 0; i < parts.size(); ++i) {
        // an expert that no request reaches keeps its bytes, the signs of its zeros included
        if (parts.size() > 1 && parts[i].equal(before[i].to(Placement::host()))) continue;
        const std::string& name = spec.stored.tensors[i];
        Tensor& stored = edited[name];
        if (!stored.defined())
          stored = spec.is_whole() ? torch::empty(spec.stored.shape, parts[i].options())
                                   : to_tensor(files.checkpoint.view(name)).clone();
        put_stored_part(stored, spec, parts[i]);
      }
    }
  }
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : edited) sources.push_back(to_source(name, tensor));
  export_checkpoint(files.checkpoint, {.replaced = sources}, folder);
}

}  // namespace

void write_edited_checkpoint(const ModelFiles& files, std::span<const WeightTransaction::Entry> entries,
                             EditRecords records, const std::filesystem::path& folder) {
  export_model(files, entries, folder);
  std::string requests;
  for (const std::span<const EditRequest> some : {records.earlier, records.requests})
    for (const EditRequest& request : some) requests += to_json_line(request) + "\n";
  // A folder of its own: tools that load every *.safetensors of a model folder must not find it.
  make_folders(folder / "delta");
  write_delta(folder / "delta" / "delta.safetensors", files.config, entries,
              {records.facts.owner.base_hash, records.facts.owner.method, records.stream.request_ids});
  if (records.keeps_state) {
    make_folders(stream_folder(folder));
    records.facts.owner.beside = stream_owner(requests);
    save_stream(stream_folder(folder), records.stream, records.facts, files.config);
  }
  write_text_file(folder / "requests.jsonl", requests);
}

}  // namespace lancet
