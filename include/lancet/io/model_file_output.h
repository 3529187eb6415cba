// An output whose model is one file: "edited.gguf". Everything else of the output is in the folder "edited.gguf.edits"
// beside the file. The folder says by a hash which file belongs to it.
#pragma once

#include <filesystem>
#include <optional>

#include "lancet/io/output_folder.h"

namespace lancet {

/// Where an output is written.
struct OutputPlace {
  std::filesystem::path folder;                     ///< "out", or "edited.gguf.edits"
  std::optional<std::filesystem::path> model_file;  ///< "edited.gguf"; nullopt: the model is in the folder

  /// Returns the path that the user names for this output.
  const std::filesystem::path& named() const { return model_file ? *model_file : folder; }
};

/// Returns the place that a new output of this name has: a name that ends in ".gguf" means a model file.
OutputPlace output_place(const std::filesystem::path& named);

/// Returns the place of an existing output, which may be named by its model file or by the folder beside it. Every
/// other path is returned as the folder. If a killed run had put the folder in place but not yet the file, this moves
/// the file first. Throws: ConfigError if another file has its name by then.
OutputPlace existing_output(const std::filesystem::path& named);

/// Checks that neither the folder nor the file overlaps the model, as check_apart() does for a folder. Throws:
/// ConfigError.
void check_apart(const OutputPlace& place, const std::filesystem::path& model);

/// Calls check_apart(), and checks that the model file does not exist, or, with IfExists::kReplace, is the one that the
/// folder beside it describes. Reads an existing model file whole. Throws: ConfigError.
void check_output_place(const OutputPlace& place, IfExists policy, const std::filesystem::path& model);

/// Puts the folder in place by OutputFolder::commit(), and then moves the model file out of it, in one step each. If
/// the process ends between the two steps, existing_output() and the next commit make up for the second one. Throws:
/// as OutputFolder::commit(); ConfigError if another file has the name by now; CheckpointError if the file system
/// refuses.
void commit_output(OutputFolder& folder, const OutputPlace& place);

}  // namespace lancet
