// Whole small files and document streams.
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

/// Reads a file like load_text(). Throws: ConfigError "what: path: ..." when the file cannot be read. `what` names the
/// role ("request file").
std::string read_text_file(const std::filesystem::path& path, std::string_view what);

/// Names of what lies in the folder, sorted. Throws: CheckpointError when the folder cannot be listed.
std::vector<std::string> folder_names(const std::filesystem::path& folder);

/// The folder and those that it lies in, where they are not there. Throws: CheckpointError when the disk refuses.
void make_folders(const std::filesystem::path& folder);

/// Makes the folder, and a file in it that goes away again: what cannot be written is found before the work whose
/// result it would be. `what` names the role ("statistics.cache"). Throws: CheckpointError.
void check_writable(const std::filesystem::path& folder, std::string_view what);

/// Temporary file beside it, fsync, rename. Throws: CheckpointError when the disk refuses.
void write_text_file(const std::filesystem::path& path, std::string_view text);

/// Documents of a corpus, in file order: one per non-empty line of a text file, or the "text" field of each line of a
/// .jsonl file. Either may be compressed: .txt.gz, .jsonl.gz.
class DocumentReader {
 public:
  /// Throws: ConfigError when the file cannot be read.
  explicit DocumentReader(const std::filesystem::path& path);
  /// The next document, or nullopt at the end. Throws: ConfigError with file and line for a line that is not valid or
  /// longer than 16 MB, and with the file for compressed data that is cut or damaged.
  std::optional<std::string> next();

 private:
  /// False at the end.
  bool next_line(std::string& line);

  std::filesystem::path path_;
  std::unique_ptr<std::istream> file_;
  int64_t line_ = 0;
  bool jsonl_ = false;
};

}  // namespace lancet
