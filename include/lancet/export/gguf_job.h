// `lancet export gguf`: writes a model folder as one GGUF file, for llama.cpp, Ollama and LM Studio. docs/gguf.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "lancet/io/output_folder.h"

namespace lancet {

/// Type of the file's matrices. Vectors, norms and what routes tokens to experts are F32.
enum class GgufMatrixType { kAuto, kF32, kF16, kBf16, kQ8_0 };

/// Returns "auto", "F32", "F16", "BF16", "Q8_0".
std::string gguf_matrix_type_name(GgufMatrixType type);

struct ExportGgufJob {
  std::filesystem::path model;  ///< a folder, as for open_model()
  std::filesystem::path out;    ///< a file ".gguf"
  IfExists if_exists = IfExists::kError;
  GgufMatrixType type = GgufMatrixType::kAuto;  ///< kAuto: the type that the folder's weights have
};

struct ExportGgufReport {
  std::string architecture;
  std::map<std::string, int64_t> types = {};  ///< number of tensors by their types in the file
  std::string tokenizer;                      ///< "gpt2 (qwen2)", "llama"
  int64_t file_bytes = 0;
};

/// Writes the file, which appears complete or not at all. Before weights are written, the metadata is read back: the
/// file must describe the same computation as config.json, and its tokenizer must give the same ids. Throws:
/// ConfigError for an output that exists, has another ending or is no GGUF file, and for a model that is one already;
/// CheckpointError for a model whose architecture, config.json or tokenizer GGUF cannot say; NumericError for numbers
/// that the type cannot hold.
ExportGgufReport export_gguf_file(const ExportGgufJob& job);

std::string to_json(const ExportGgufReport& report, const ExportGgufJob& job);

}  // namespace lancet
