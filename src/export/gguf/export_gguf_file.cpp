#include <array>
#include <filesystem>
#include <optional>

#include "config_differences.h"
#include "folder_metadata.h"
#include "gguf_tensors.h"
#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/deltas/adapter.h"
#include "lancet/export/gguf_job.h"
#include "lancet/gguf/gguf_head.h"
#include "lancet/io/file_handle.h"
#include "lancet/outcome/report_json.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// Texts on which the file's tokenizer must agree with the folder's: words, numbers, blanks, lines, scripts, code.
constexpr std::string_view kTexts[] = {"The capital of France is Paris.",
                                       "I'll say it's 1234567 dollars, isn't it? WE'RE 3.14159!",
                                       "  two  blanks   three \t tab\n\nlines\r\n  and   an end  ",
                                       "naïve café déjà-vu cafe\u0301 \u212b \ufb01",
                                       "Привет, мир! 你好，世界 こんにちは 안녕하세요 שלום مرحبا नमस्ते",
                                       "🙂👩‍👩‍👧 🇫🇷 ∑∫√ ½ ⅷ ٣",
                                       "def f(x):\n    return {'a': [x**2, -1e-9]}  # 100%\n",
                                       "https://example.org/a_b?c=d&e=%20 user@example.org C:\\temp",
                                       "camelCase SCREAMING_CASE a-b_c ... --- ''' \"quotes\" «ça»",
                                       "",
                                       " ",
                                       "\n"};

bool is_gelu(Activation activation) { return activation == Activation::kGelu || activation == Activation::kGeluTanh; }

bool is_of_lancet(const fs::path& file) {
  try {
    return is_gguf_file(file) && GgufFile::open(file).has(kGgufVersionKey);
  } catch (const CheckpointError&) {
    return false;
  }
}

void check_out(const ExportGgufJob& job) {
  if (job.out.extension() != ".gguf")
    throw ConfigError(cat("--out: ", job.out.string(), ": expected a file that ends with .gguf"));
  if (!has_entry(job.out)) return;
  if (job.if_exists == IfExists::kError)
    throw ConfigError(cat("--out: ", job.out.string(), ": exists already: choose another name, or --replace it"));
  if (!is_of_lancet(job.out))
    throw ConfigError(cat("--out: ", job.out.string(),
                          ": lancet did not write this file and does not replace it: ", "choose another name"));
}

void check_model(const ExportGgufJob& job) {
  if (is_adapter(job.model))
    throw ConfigError(cat(job.model.string(), ": expected a whole model, got an adapter: apply its edits to its model ",
                          "(lancet apply), or export it with lancet export adapter --format gguf"));
  if (find_gguf(job.model))
    throw ConfigError(cat(job.model.string(), ": expected a model folder with safetensors, got a GGUF file: lancet ",
                          "export model copies it"));
}

/// The text of an entry.
std::string text_of_entry(const std::vector<GgufEntry>& entries, std::string_view key) {
  for (const auto& [name, value] : entries)
    if (const auto* text = std::get_if<std::string>(&value); text != nullptr && name == key) return *text;
  return "";
}

class GgufExport {
 public:
  explicit GgufExport(const ExportGgufJob& job) : job_(job), files_(open_model(job.model, {})) {}

  ExportGgufReport run() {
    const GgufLayout layout = layout_of(files_);
    const GgufRope rope = rope_of(files_);
    const GgufTensors weights(files_, layout, job_.type);
    std::vector<GgufNewTensor> tensors = weights.described();
    const std::vector<GgufRopeTensor> factors = gguf_rope_tensors(rope);
    for (size_t i = 0; i < factors.size(); ++i)
      tensors.insert(tensors.begin() + static_cast<std::ptrdiff_t>(i),
                     {factors[i].name, find_gguf_type("F32"), {std::ssize(factors[i].numbers)}});
    const std::vector<GgufEntry> entries = metadata(layout, rope, weights.matrix_type());
    const std::string head = new_gguf_head(entries, tensors);
    TemporaryFile temporary(job_.out);
    FileHandle& to = temporary.file();
    to.write(std::as_bytes(std::span(head)));
    for (size_t i = 0; i < factors.size(); ++i)
      write_tensor(to, tensors[i], std::as_bytes(std::span(factors[i].numbers)));
    const uint64_t size = head.size() + tensors.back().begin + tensors.back().bytes() + tensors.back().padding();
    check_description(temporary.path(), size);
    write_weights(to, weights, std::span(tensors).subspan(factors.size()));
    files_.checkpoint.check_unchanged();
    check_out(job_);  // again: another run may have ended meanwhile
    temporary.commit();
    ExportGgufReport report{.architecture = std::string(layout.architecture()),
                            .tokenizer = text_of_entry(entries, "tokenizer.ggml.model"),
                            .file_bytes = static_cast<int64_t>(size)};
    if (report.tokenizer == "gpt2") report.tokenizer += cat(" (", text_of_entry(entries, "tokenizer.ggml.pre"), ")");
    for (const GgufNewTensor& tensor : tensors) ++report.types[std::string(tensor.type->name)];
    return report;
  }

 private:
  std::vector<GgufEntry> metadata(const GgufLayout& layout, const GgufRope& rope, const GgufType& type) const {
    constexpr std::array<std::pair<std::string_view, uint32_t>, 4> kFileTypes{
        {{"F32", 0}, {"F16", 1}, {"Q8_0", 7}, {"BF16", 32}}};
    std::vector<GgufEntry> entries = layout.metadata(rope);
    entries.emplace_back("general.type", std::string("model"));
    entries.emplace_back("general.name", fs::absolute(job_.model).lexically_normal().filename().string());
    for (const auto& [name, number] : kFileTypes)
      if (type.name == name) entries.emplace_back("general.file_type", number);
    if (!type.is_plain()) entries.emplace_back("general.quantization_version", uint32_t{2});
    entries.emplace_back(kGgufVersionKey, std::string(kVersion));
    for (GgufEntry& entry : gguf_tokenizer(tokenizer_of(files_))) entries.push_back(std::move(entry));
    return entries;
  }

  /// What the file says is read as it will be read: so nothing is lost without a word. Its weights need not be there.
  void check_description(const fs::path& file, uint64_t size) const {
    fs::resize_file(file, size);
    ModelConfig said = describe_model(file, {}).config;
    if (is_gelu(files_.config.activation) && is_gelu(said.activation) && files_.config.activation != said.activation) {
      log_warning(cat(files_.checkpoint.folder().string(), ": a GGUF file does not say which form of GELU the model ",
                      "has, the exact one or the one with tanh; programs that run the file take the latter"));
      said.activation = files_.config.activation;
    }
    const std::vector<std::string> keys = differing_keys(files_.config, said);
    if (!keys.empty())
      throw CheckpointError(cat((files_.checkpoint.folder() / "config.json").string(), ": ", join(keys),
                                ": expected values that a GGUF file of this architecture can say, got others: ",
                                "programs would compute something else without a word"));
    const std::unique_ptr<Tokenizer> written = open_bpe_tokenizer(file / "tokenizer.json");
    for (const std::string_view text : kTexts)
      if (written->ids(text) != files_.tokenizer->ids(text))
        throw CheckpointError(cat((files_.checkpoint.folder() / "tokenizer.json").string(),
                                  ": expected a tokenizer that a GGUF file can say, got one that cuts '",
                                  printable(std::string(text)), "' otherwise than what the file would have"));
  }

  static void write_tensor(FileHandle& to, const GgufNewTensor& tensor, std::span<const std::byte> bytes) {
    to.write(bytes);
    to.write(std::vector<std::byte>(tensor.padding()));
  }

  static void write_weights(FileHandle& to, const GgufTensors& weights, std::span<const GgufNewTensor> tensors) {
    Progress progress("export", std::ssize(tensors), "tensors");
    for (size_t i = 0; i < tensors.size(); ++i) {
      for (const Tensor& piece : weights.encoded(i))
        to.write({static_cast<const std::byte*>(piece.const_data_ptr()), piece.nbytes()});
      to.write(std::vector<std::byte>(tensors[i].padding()));
      progress.advance(1);
    }
  }

  const ExportGgufJob& job_;
  ModelFiles files_;
};

}  // namespace

std::string gguf_matrix_type_name(GgufMatrixType type) {
  constexpr std::array kNames{"auto", "F32", "F16", "BF16", "Q8_0"};
  return kNames.at(static_cast<size_t>(type));
}

ExportGgufReport export_gguf_file(const ExportGgufJob& job) {
  check_out(job);
  check_model(job);
  return GgufExport(job).run();
}

std::string to_json(const ExportGgufReport& report, const ExportGgufJob& job) {
  return dump_report({{"format", "lancet-export-1"},
                      {"lancet", kVersion},
                      {"model", job.model.string()},
                      {"file", job.out.string()},
                      {"architecture", report.architecture},
                      {"tokenizer", report.tokenizer},
                      {"types", report.types},
                      {"file_bytes", report.file_bytes}});
}

}  // namespace lancet
