// Whole small files and document streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/hash.h"

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

// A file mapped read-only into memory, and readable without the mapping.

/// What shows that somebody wrote to a file.
struct FileStamp {
  int64_t size_bytes = 0;
  int64_t written_ns = 0;  ///< mtime: writing sets it, and whoever likes to
  int64_t changed_ns = 0;  ///< ctime: writing sets it, and so do links, renames and permissions; nobody can set it back
  bool operator==(const FileStamp&) const = default;
};

class MappedFile {
 public:
  /// Throws: CheckpointError when the file is absent, not a regular file, or cannot be mapped. An empty file has an
  /// empty span.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  /// A file that lies in no folder, with these bytes; `path` is what messages and exports call it. Throws:
  /// PlacementError where there is no memory for it.
  static std::shared_ptr<const MappedFile> in_memory(const std::filesystem::path& path,
                                                     std::span<const std::byte> bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// The file's bytes, in place. Touching what somebody has cut off the file since is a fatal signal: for files that
  /// others write to there is read().
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Open for reading as long as this lives, whatever file `path` names by then.
  int descriptor() const { return descriptor_; }

  /// Copies the bytes from `offset` on into `to`, past the mapping: no page of it is touched, and a file that was cut
  /// since it was opened is an error instead of a fatal signal. From any thread. Throws: CheckpointError.
  void read(uint64_t offset, std::span<std::byte> to) const;
  /// Returns all of the file, as read() has it.
  std::string text() const;
  /// Adds `length` bytes from `offset` on, as read() has them: the hash is that of the same bytes in memory.
  void add_to(ContentHash& hash, uint64_t offset, uint64_t length) const;

  /// The file's stamp when it was opened.
  const FileStamp& stamp() const { return stamp_; }
  /// Returns the stamp that the opened file has now. Throws: CheckpointError.
  FileStamp stamp_now() const;

 private:
  MappedFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  void map();

  std::filesystem::path path_;
  int descriptor_;  // owned
  std::span<const std::byte> bytes_;
  FileStamp stamp_;
};

}  // namespace lancet
