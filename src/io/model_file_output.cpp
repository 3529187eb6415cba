#include "lancet/io/model_file_output.h"

#include <fcntl.h>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"
#include "lancet/io/model_file_names.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelFileEnd = ".gguf";
constexpr const char* kFolderBeside = ".edits";

fs::path folder_beside(const fs::path& file) { return {cat(file.string(), kFolderBeside)}; }

/// Moves a finished file to its place in one step.
void put_model_file(const fs::path& from, const fs::path& to, IfExists policy) {
  const unsigned flags = policy == IfExists::kReplace ? 0 : RENAME_NOREPLACE;
  int error_number = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0 ? 0 : errno;
  if (error_number == EINVAL || error_number == ENOSYS) {  // a file system without the flag
    std::error_code error;
    error_number = fs::exists(to, error) ? EEXIST : ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  }
  if (error_number == EEXIST)
    throw ConfigError(cat(to.string(), ": was made in the meantime: the edited model is complete in ", from.string(),
                          ": rename it, or choose another name"));
  if (error_number != 0)
    throw CheckpointError(cat(file_problem(to, "cannot put the file in place", error_number),
                              "; the edited model is complete in ", from.string()));
  sync_folder(to.parent_path().empty() ? fs::path(".") : to.parent_path());
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
  if (file.extension() != kModelFileEnd || !fs::is_regular_file(file, error)) return {named, std::nullopt};
  const fs::path beside = folder_beside(file);
  return fs::is_directory(beside, error) ? OutputPlace{beside, file} : OutputPlace{named, std::nullopt};
}

void check_apart(const OutputPlace& place, const fs::path& model) {
  check_apart(place.folder, model);
  if (place.model_file) check_apart(*place.model_file, model);
}

void commit_output(OutputFolder& folder, const OutputPlace& place, IfExists policy) {
  folder.commit();
  if (place.model_file) put_model_file(place.folder / kGgufFile, *place.model_file, policy);
}

}  // namespace lancet
