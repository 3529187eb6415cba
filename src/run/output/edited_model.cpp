#include "edited_model.h"

#include "edit/earlier_output.h"
#include "lancet/deltas/delta_file.h"
#include "lancet/io/files.h"

namespace lancet {

void write_edited_model(const ModelFiles& files, const OutputForm& form,
                        std::span<const WeightTransaction::Entry> entries, EditRecords records,
                        const std::filesystem::path& folder) {
  form.write(entries, folder);
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
