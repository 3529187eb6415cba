// npz_dump FILE.npz, for the parity tests.
// Prints one JSON object: per array "descr", "shape", "fortran_order", and for numbers that can be read "dtype",
// "crc32" of the bytes and "sum" (f64, in order; null when it is not finite). A file that is refused gives {"error"}.
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "lancet/checkpoint/npz.h"
#include "lancet/core/error.h"

namespace {

template <typename T>
double sum_of(const std::vector<std::byte>& bytes) {
  double sum = 0;
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    sum += static_cast<double>(value);
  }
  return sum;
}

double sum_of(const std::vector<std::byte>& bytes, lancet::DType dtype) {
  switch (dtype) {
    case lancet::DType::kF32:
      return sum_of<float>(bytes);
    case lancet::DType::kF64:
      return sum_of<double>(bytes);
    case lancet::DType::kI32:
      return sum_of<int32_t>(bytes);
    default:
      return sum_of<int64_t>(bytes);
  }
}

nlohmann::json describe(const lancet::NpzReader& file, const lancet::NpzArray& array) {
  nlohmann::json json{{"descr", array.descr}, {"shape", array.shape}, {"fortran_order", array.fortran_order}};
  if (!array.dtype || array.fortran_order) return json;
  std::vector<std::byte> bytes(array.size_bytes);
  file.read(array.name, bytes);
  const double sum = sum_of(bytes, *array.dtype);
  json["dtype"] = lancet::dtype_name(*array.dtype);
  json["sum"] = std::isfinite(sum) ? nlohmann::json(sum) : nlohmann::json();
  json["crc32"] = crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  return json;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: npz_dump FILE.npz\n";
    return 2;
  }
  nlohmann::json answer = nlohmann::json::object();
  try {
    const lancet::NpzReader file = lancet::NpzReader::open(argv[1]);
    for (const lancet::NpzArray& array : file.arrays()) answer[array.name] = describe(file, array);
  } catch (const lancet::Error& error) {
    answer = {{"error", error.what()}};
  }
  std::cout << answer.dump() << '\n';
  return 0;
}
