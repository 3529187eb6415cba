#include "lancet/io/files.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <utility>

#include "file_buffer.h"
#include "gzip_stream.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/core/text_file.h"
#include "lancet/io/file_handle.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// A line of a corpus is an object of plain fields. It may have more fields than "text".
constexpr int kDeepestLine = 64;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// No book is this long. A few compressed bytes can expand to any length, and the tokens of a text take 100 times its
/// memory.
constexpr size_t kLongestLine = 16'000'000;

/// Reads "text" from one line of a .jsonl file. Returns the position at which the text stops being UTF-8; npos if all
/// of it is UTF-8. `where`: file and line.
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
    if (const auto at = first_invalid_utf8(line))
      throw ConfigError(cat(where, ": expected UTF-8, got an invalid byte at position ", *at,
                            " of the line; convert the file, for example with iconv"));
    return line;
  }
  if (file_->bad()) throw ConfigError(cat("corpus: ", file_problem(path_, "cannot read", EIO)));
  return std::nullopt;
}

namespace {

int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const std::shared_ptr<MappedFile> mapped(new MappedFile(path, FileHandle::open_regular(path).release()));
  mapped->map();
  return mapped;
}

std::shared_ptr<const MappedFile> MappedFile::in_memory(const std::filesystem::path& path,
                                                        std::span<const std::byte> bytes) {
  const int descriptor = ::memfd_create("lancet", MFD_CLOEXEC);
  if (descriptor < 0) throw PlacementError(file_problem(path, "cannot keep in memory", errno));
  FileHandle file(descriptor, path);
  try {
    file.write(bytes);
  } catch (const CheckpointError& error) {
    throw PlacementError(cat("no memory for ", bytes_text(bytes.size()), ": ", error.what()));
  }
  const std::shared_ptr<MappedFile> mapped(new MappedFile(path, file.release()));
  mapped->map();
  return mapped;
}

void MappedFile::map() {
  stamp_ = stamp_now();
  const auto size_bytes = static_cast<uint64_t>(stamp_.size_bytes);
  if (size_bytes == 0) return;  // mmap refuses empty ranges
  void* const begin = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, descriptor_, 0);
  if (begin == MAP_FAILED && errno == ENOMEM)
    throw PlacementError(cat(path_.string(), ": the system has no address space for ", bytes_text(size_bytes),
                             " more; raise the limit of virtual memory (ulimit -v) or of mappings (vm.max_map_count)"));
  if (begin == MAP_FAILED) throw CheckpointError(file_problem(path_, "cannot map into memory", errno));
  bytes_ = {static_cast<const std::byte*>(begin), size_bytes};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  ::close(descriptor_);
}

void MappedFile::read(uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got = ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw CheckpointError(file_problem(path_, "cannot read", errno));
    if (got == 0)
      throw CheckpointError(cat(path_.string(), ": expected ", bytes_.size(), " bytes, got an end at byte ", offset,
                                "; the file was cut since it was opened: start again"));
    to = to.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
}

std::string MappedFile::text() const {
  std::string text(bytes_.size(), '\0');
  read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void MappedFile::add_to(ContentHash& hash, uint64_t offset, uint64_t length) const {
  hash.add(length, [&](uint64_t begin, std::span<std::byte> piece) { read(offset + begin, piece); });
}

FileStamp MappedFile::stamp_now() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) throw CheckpointError(file_problem(path_, "cannot stat", errno));
  return {status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

}  // namespace lancet
