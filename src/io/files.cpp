#include "lancet/io/files.h"

#include <array>
#include <cerrno>
#include <utility>

#include "file_buffer.h"
#include "gzip_stream.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/core/text_file.h"
#include "lancet/core/utf8.h"
#include "lancet/io/file_handle.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// A corpus line is an object of plain fields; more than "text" may stand there.
constexpr int kDeepestLine = 64;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// No book is as long. Few compressed bytes can promise any length, and tokens of a text take 100 times its memory.
constexpr size_t kLongestLine = 16'000'000;

/// Returns the place where the text stops being UTF-8; npos when it is UTF-8 to the end.
size_t first_invalid_byte(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = decode_utf8_at(text, at).bytes;
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

/// "text" of one line of a .jsonl file. `where`: file and line.
std::string parse_document(std::string_view line, const std::string& where) {
  nlohmann::json document;
  try {
    document = parse_strict_json(line, kDeepestLine);
  } catch (const JsonProblem& problem) {
    throw ConfigError(cat(where, ": expected a JSON object with a field \"text\", got a line that is ", problem.what(),
                          "; correct or remove the line"));
  }
  const auto text = document.is_object() ? document.find("text") : document.end();
  if (text == document.end() || !text->is_string())
    throw ConfigError(cat(where, ": expected a JSON object with a string \"text\", got ", printable(document.dump()),
                          "; correct or remove the line"));
  return text->get<std::string>();
}

}  // namespace

std::string read_text_file(const fs::path& path, std::string_view what) {
  constexpr uint64_t kLargest = 2'000'000'000;  // some 2 million requests
  try {
    return load_text(path, kLargest);
  } catch (const FileProblem& problem) {
    throw ConfigError(cat(what, ": ", path.string(), ": cannot be read: ", problem.what(), "; check the path"));
  }
}

void make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw CheckpointError(file_problem(folder, "cannot make the folder", error.value()));
  if (!fs::is_directory(folder, error)) throw CheckpointError(file_problem(folder, "cannot make the folder", EEXIST));
}

void check_writable(const fs::path& folder, std::string_view what) {
  try {
    make_folders(folder);
    TemporaryFile(folder / "trial").file().write(std::as_bytes(std::span(what)));
  } catch (const CheckpointError& error) {
    throw CheckpointError(cat(what, ": ", error.what()));
  }
}

void write_text_file(const fs::path& path, std::string_view text) {
  TemporaryFile temporary(path);
  temporary.file().write(std::as_bytes(std::span(text)));
  temporary.commit();
}

DocumentReader::DocumentReader(const fs::path& path) : path_(path) {
  const bool compressed = path.extension() == ".gz";
  jsonl_ = (compressed ? path.stem() : path).extension() == ".jsonl";
  try {
    file_ = std::make_unique<FileStream>(path);
  } catch (const FileProblem& problem) {
    throw ConfigError(cat("corpus: ", path.string(), ": cannot be read: ", problem.what(), "; check the path"));
  }
  if (compressed) file_ = std::make_unique<GzipStream>(std::move(file_), cat("corpus: ", path.string()));
}

bool DocumentReader::next_line(std::string& line) {
  std::array<char, 1 << 16> buffer;
  line.clear();
  for (;;) {
    file_->getline(buffer.data(), buffer.size());
    const auto count = static_cast<size_t>(file_->gcount());  // with the '\n', which is not in the buffer
    if (file_->bad()) return false;
    if (count == 0) return !line.empty();
    const bool is_full = file_->fail() && !file_->eof(), is_ended = !is_full && !file_->eof();
    line.append(buffer.data(), is_ended ? count - 1 : count);
    if (line.size() > kLongestLine)
      throw ConfigError(cat("corpus: ", path_.string(), ":", line_ + 1, ": expected lines of at most ",
                            bytes_text(kLongestLine), ", a document each, got a longer one; divide it into lines"));
    if (!is_full) return true;
    file_->clear();
  }
}

std::optional<std::string> DocumentReader::next() {
  std::string line;
  while (next_line(line)) {
    ++line_;
    if (line_ == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    while (!line.empty() && line.back() == '\r') line.pop_back();
    if (is_blank(line)) continue;
    const std::string where = cat("corpus: ", path_.string(), ":", line_);
    if (jsonl_) {
      std::string document = parse_document(line, where);
      if (is_blank(document)) continue;
      return document;
    }
    if (const size_t at = first_invalid_byte(line); at != std::string::npos)
      throw ConfigError(cat(where, ": expected UTF-8, got an invalid byte at position ", at,
                            " of the line; convert the file, for example with iconv"));
    return line;
  }
  if (file_->bad()) throw ConfigError(cat("corpus: ", file_problem(path_, "cannot read", EIO)));
  return std::nullopt;
}

}  // namespace lancet
