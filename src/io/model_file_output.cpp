#include "lancet/io/model_file_output.h"

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"
#include "lancet/io/files.h"
#include "lancet/io/model_file_names.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelFileEnd = ".gguf";
constexpr const char* kFolderBeside = ".edits";
/// In the folder: which model file belongs to it, and which one that file replaces.
constexpr const char* kRecord = "model-file.json";
constexpr int kDeepestRecord = 2;

struct ModelFileRecord {
  std::string hash;
  std::string replaces;  ///< hash of the file that it replaces; empty: there was none
};

fs::path folder_beside(const fs::path& file) { return {cat(file.string(), kFolderBeside)}; }

std::string hash_of(const fs::path& file) {
  const auto bytes = MappedFile::open(file);
  ContentHash hash;
  bytes->add_to(hash, 0, bytes->bytes().size());
  return hash.hex();
}

/// nullopt: the folder has none that can be read.
std::optional<ModelFileRecord> read_record(const fs::path& folder) {
  try {
    const nlohmann::json json = parse_strict_json(MappedFile::open(folder / kRecord)->text(), kDeepestRecord);
    return ModelFileRecord{json.at("hash").get<std::string>(), json.at("replaces").get<std::string>()};
  } catch (const CheckpointError&) {
  } catch (const JsonProblem&) {
  } catch (const nlohmann::json::exception&) {
  }
  return std::nullopt;
}

void write_record(const fs::path& folder, const ModelFileRecord& record) {
  write_text_file(folder / kRecord,
                  nlohmann::ordered_json{{"hash", record.hash}, {"replaces", record.replaces}}.dump(1) + "\n");
}

[[noreturn]] void refuse_other_file(const fs::path& file, const fs::path& complete) {
  throw ConfigError(cat(file.string(), ": is another file than the one that is to be replaced. The edited model is ",
                        "complete in ", complete.string(), ": move it to another name"));
}

/// Moves the model file from the folder to its place, if it is still in the folder: a run before may have been killed,
/// or another process may do the same now.
void finish_move(const OutputPlace& place) {
  const fs::path from = place.folder / kGgufFile, &to = *place.model_file;
  if (!has_entry(from)) return;
  const std::optional<ModelFileRecord> record = read_record(place.folder);
  if (!record) return;
  const bool replaces = !record->replaces.empty();
  if (has_entry(to) && !(replaces && fs::is_regular_file(fs::symlink_status(to)) && hash_of(to) == record->replaces))
    refuse_other_file(to, from);
  int error_number = 0;
  if (!replaces)
    error_number = rename_new(from, to);
  else if (::rename(from.c_str(), to.c_str()) != 0)
    error_number = errno;
  if (error_number == ENOENT && has_entry(to)) return;  // another process was faster
  if (error_number == EEXIST) refuse_other_file(to, from);
  if (error_number != 0)
    throw CheckpointError(cat(file_problem(to, "cannot put the file in place", error_number),
                              "; the edited model is complete in ", from.string()));
  sync_folder(to.parent_path());
}

}  // namespace

OutputPlace output_place(const fs::path& named) {
  if (named.extension() != kModelFileEnd) return {named, std::nullopt};
  return {folder_beside(named), named};
}

OutputPlace existing_output(const fs::path& named) {
  std::error_code error;
  const fs::path whole = fs::absolute(named / "").lexically_normal().parent_path();
  const fs::path file = whole.extension() == kFolderBeside ? fs::path(whole).replace_extension() : named;
  const OutputPlace place = output_place(file);
  if (!place.model_file || !fs::is_directory(place.folder, error) || fs::is_directory(file, error))
    return {named, std::nullopt};
  finish_move(place);
  return fs::is_regular_file(file, error) ? place : OutputPlace{named, std::nullopt};
}

void check_apart(const OutputPlace& place, const fs::path& model) {
  check_apart(place.folder, model);
  if (place.model_file) check_apart(*place.model_file, model);
}

void check_output_place(const OutputPlace& place, IfExists policy, const fs::path& model) {
  check_apart(place, model);
  if (!place.model_file) return;
  finish_move(place);
  if (!has_entry(*place.model_file)) return;
  const std::string where = cat("output.dir: ", place.model_file->string());
  if (policy == IfExists::kError)
    throw ConfigError(cat(where, ": exists already: choose another name, or output.replace: true"));
  if (!fs::is_regular_file(fs::symlink_status(*place.model_file)))
    throw ConfigError(cat(where, ": is a link or a folder, which lancet does not replace: choose another name"));
  const std::optional<ModelFileRecord> record = read_record(place.folder);
  if (!record || record->hash != hash_of(*place.model_file))
    throw ConfigError(cat(where, ": is not the file that ", place.folder.string(),
                          " describes, and lancet replaces nothing else: choose another name"));
}

void commit_output(OutputFolder& folder, const OutputPlace& place) {
  if (!place.model_file) return folder.commit();
  const bool replaces = has_entry(*place.model_file);
  const std::optional<ModelFileRecord> before = replaces ? read_record(place.folder) : std::nullopt;
  write_record(folder.staging(), {hash_of(folder.staging() / kGgufFile), before ? before->hash : ""});
  folder.commit();
  finish_move(place);
}

}  // namespace lancet
