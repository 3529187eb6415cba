#include "part_finder.h"

#include <algorithm>
#include <array>

#include "lancet/checkpoint/module_name.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

std::string types_text(const std::vector<DType>& types) {
  std::vector<std::string> names;
  for (const DType type : types) names.emplace_back(dtype_name(type));
  return join(names, " or ");
}

std::string shapes_text(const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<std::string> texts;
  for (const std::vector<int64_t>& shape : shapes) texts.push_back(shape_text(shape));
  return join(texts, " or ");
}

template <typename T>
bool is_among(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

PartFinder::PartFinder(const Checkpoint& checkpoint, PackedSpec& spec, std::vector<std::string>& problems)
    : checkpoint_(checkpoint), spec_(spec), problems_(problems), before_(problems.size()) {}

const TensorInfo* PartFinder::need(const ExpectedPart& expected) {
  if (contains(expected.tensor)) return take(expected);
  problem(expected.tensor, cat("missing, expected ", types_text(expected.types),
                               expected.shapes.empty() ? "" : " of shape " + shapes_text(expected.shapes),
                               ": the file is not complete, download it again"));
  return nullptr;
}

const TensorInfo* PartFinder::take(const ExpectedPart& expected) {
  if (!contains(expected.tensor)) return nullptr;
  const TensorInfo& info = checkpoint_.info(expected.tensor);
  spec_.parts.push_back({expected.role, expected.tensor});
  spec_.stored_bytes += static_cast<int64_t>(info.end - info.begin);
  bool fits = true;
  if (!is_among(expected.types, info.dtype)) {
    problem(expected.tensor, cat("type ", dtype_name(info.dtype), ", expected ", types_text(expected.types)));
    fits = false;
  }
  if (!expected.shapes.empty() && !is_among(expected.shapes, info.shape)) {
    problem(expected.tensor,
            cat("shape ", shape_text(info.shape), ", expected ", shapes_text(expected.shapes), " for the matrix ",
                shape_text(std::vector{spec_.rows, spec_.columns}), " as quantization_config describes it"));
    fits = false;
  }
  return fits ? &info : nullptr;
}

void PartFinder::take_idle_zeros(const std::string& tensor) {
  constexpr std::array kTypes{DType::kI8, DType::kI32, DType::kF8E4M3};
  const TensorInfo* info = take({PartRole::kRecord, tensor, {kTypes.begin(), kTypes.end()}, {}});
  if (info == nullptr) return;
  const std::string numbers = bytes(*info);
  if (numbers.find_first_not_of('\0') != std::string::npos)
    problem(tensor, "has zero points other than 0, but quantization_config says symmetric: expected none");
}

void PartFinder::take_order(const std::string& tensor, std::string_view why) {
  const ExpectedPart order{PartRole::kOrder, tensor, {DType::kI32, DType::kI64}, {{spec_.columns}}};
  if (contains(tensor)) {
    take(order);
  } else if (spec_.code.ordered) {
    problem(tensor, cat("missing, expected I32 of shape ", shape_text(order.shapes.front()), ": ", why,
                        ", so nothing else says which group a column belongs to; download the file again"));
  }
}

bool PartFinder::fills_words(int64_t size, std::string_view what) {
  const int64_t bits = spec_.code.bits, step = bits == 3 ? 32 : 32 / bits;
  if (size % step == 0) return true;
  problem(spec_.name, cat("expected a multiple of ", step, " ", what, " for numbers of ", bits,
                          " bits in words of 32, got ", size));
  return false;
}

void PartFinder::problem(std::string_view tensor, std::string_view what) {
  problems_.push_back(cat(tensor, ": ", what));
}

std::string PartFinder::bytes(const TensorInfo& tensor) const {
  std::string text(tensor.end - tensor.begin, '\0');
  checkpoint_.view(tensor.name).read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

std::string PartFinder::module() const { return std::string(module_of(spec_.name)); }

}  // namespace lancet
