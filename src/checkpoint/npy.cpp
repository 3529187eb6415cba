#include "lancet/checkpoint/npy.h"

#include <cstring>
#include <string>
#include <string_view>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"

namespace lancet {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kVersionBytes = 2, kNpyLengthBytes = 2;  // of version 1.0, which holds headers of up to 64 KiB

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what) {
  throw ConfigError(cat(path.string(), ": ", what,
                        ": expected a .npy file with a one-dimensional array of f64: write it with "
                        "numpy.save(path, array.astype('<f8'))"));
}

}  // namespace

std::vector<double> read_npy_numbers(const std::filesystem::path& path) {
  const std::string text = read_text_file(path, "array file");
  const std::string_view bytes = text;
  const size_t fixed = kMagic.size() + kVersionBytes + kNpyLengthBytes;
  if (!bytes.starts_with(kMagic) || bytes.size() < fixed) fail(path, "does not begin as a .npy file");
  if (bytes.substr(kMagic.size(), kVersionBytes) != std::string_view("\x01\x00", 2))
    fail(path, "is not of version 1.0");
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<unsigned char>(bytes[at])); };
  const size_t header_bytes = byte(fixed - 2) + 256 * byte(fixed - 1);
  if (bytes.size() < fixed + header_bytes) fail(path, "ends inside its header");
  const std::string_view data = bytes.substr(fixed + header_bytes);
  std::vector<double> numbers(data.size() / sizeof(double));
  // numpy writes the keys in one order and form, so that the header of such an array is known to the letter
  const std::string header = cat("{'descr': '<f8', 'fortran_order': False, 'shape': (", numbers.size(), ",), }");
  const std::string_view found = bytes.substr(fixed, header_bytes);
  if (!found.starts_with(header) || found.find_first_not_of(" \n", header.size()) != std::string_view::npos ||
      data.size() % sizeof(double) != 0)
    fail(path, cat("has the header ", excerpt(found, 100), " and ", data.size(), " bytes of numbers"));
  if (!numbers.empty()) std::memcpy(numbers.data(), data.data(), data.size());
  return numbers;
}

}  // namespace lancet
