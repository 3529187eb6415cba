#include "lancet/export/edited_model.h"

#include "lancet/io/files.h"

namespace lancet {

void write_edits(const ModelFiles& files, const EditHistory& history, const std::filesystem::path& folder,
                 const HistoryWriting& options) {
  // A folder of its own: tools that load every *.safetensors of a model folder must not find it.
  make_folders(folder / kEditsFolder);
  history.write(folder / kEditsFolder, files.config, options);
  std::string requests;
  for (const EditRequest& request : history.journal().requests()) requests += to_json_line(request) + "\n";
  write_text_file(folder / "requests.jsonl", requests);
}

}  // namespace lancet
