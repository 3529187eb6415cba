#include "found_instead.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"
#include "lancet/io/files.h"
#include "lancet/io/model_file_names.h"

namespace lancet {

bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

namespace {

namespace fs = std::filesystem;

enum class FileKind { kOther, kGguf, kPointer, kSafetensors, kZip, kHdf5 };

/// By its first bytes; kOther also where they cannot be read.
FileKind kind_of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return FileKind::kOther;  // opening a pipe would wait
  std::ifstream file(path, std::ios::binary);
  std::string begin(48, '\0');
  file.read(begin.data(), std::ssize(begin));
  begin.resize(static_cast<size_t>(file.gcount()));
  if (begin.starts_with("GGUF")) return FileKind::kGguf;
  if (begin.starts_with("version https://git-lfs")) return FileKind::kPointer;
  if (begin.starts_with("PK\x03\x04")) return FileKind::kZip;
  if (begin.starts_with("\x89HDF")) return FileKind::kHdf5;
  // eight bytes of a length, of which no file fills the last three
  const bool is_length = begin.size() > 8 && begin[5] == 0 && begin[6] == 0 && begin[7] == 0;
  return is_length && begin[8] == '{' ? FileKind::kSafetensors : FileKind::kOther;
}

constexpr const char* kHub =
    "; models of the Hugging Face hub are fetched with: hf download ORG/NAME --local-dir FOLDER";

/// Ollama's names for its files: sha256-, and the hash of what is in them.
bool is_blob(const fs::path& file) { return file.filename().string().starts_with("sha256-"); }

std::string gguf_text(const fs::path& file) {
  return cat(is_blob(file) ? "a blob of Ollama's, which is a GGUF file" : "a GGUF file", ": as a model it is named by ",
             "itself: ", file.string());
}

constexpr const char* kPointerText =
    "a pointer of Git LFS in its place, of some hundred bytes: the file itself was not fetched. In the folder: git lfs "
    "pull; or fetch the model with: hf download ORG/NAME --local-dir FOLDER";

std::string file_text(const fs::path& file) {
  switch (kind_of(file)) {
    case FileKind::kGguf:
      return gguf_text(file);
    case FileKind::kPointer:
      return kPointerText;
    case FileKind::kSafetensors:
      return "a safetensors file alone; name the folder that has it with config.json and the tokenizer";
    case FileKind::kZip:
    case FileKind::kHdf5:
      return "one file of weights, which is not in the safetensors format; name the model's folder";
    case FileKind::kOther:
      break;
  }
  return cat("something that is not a folder",
             file.filename() == "config.json" ? "; name the folder that it lies in" : kHub);
}

/// Whether the text is a name of the hub: ORG/NAME, without a folder's marks.
bool is_hub_name(const std::string& text) {
  const size_t slash = text.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < text.size() && text.front() != '.' &&
         text.find('/', slash + 1) == std::string::npos && std::ranges::all_of(text, [](unsigned char c) {
           return std::isalnum(c) || c == '/' || c == '-' || c == '_' || c == '.';
         });
}

/// Returns a path below the current folder as the user typed it: a job and a server make paths absolute.
std::string typed_text(const fs::path& place) {
  std::error_code ignored;
  const fs::path below = place.is_absolute() ? place.lexically_relative(fs::current_path(ignored)) : place;
  return below.empty() || *below.begin() == ".." ? place.string() : below.string();
}

std::string missing_text(const fs::path& place) {
  const std::string text = typed_text(place);
  if (is_hub_name(text) && !is_folder(place.parent_path()))
    return cat(
        "nothing of that name; if it is a model of the Hugging Face hub, fetch it and name its folder: hf "
        "download ",
        text, " --local-dir ", place.filename().string());
  if (text.find('/') == std::string::npos && text.find(':') != std::string::npos)
    return cat(
        "nothing of that name; if it is a model of Ollama's, name its file, a GGUF, which the line FROM of ollama "
        "show ",
        text, " --modelfile says");
  return cat("nothing of that name", kHub);
}

/// The first name that ends so; empty: none.
std::string name_ending(const std::vector<std::string>& names, std::string_view ending) {
  const auto found = std::ranges::find_if(names, [&](const std::string& name) { return name.ends_with(ending); });
  return found == names.end() ? std::string() : *found;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Folders in it that are model folders.
std::vector<std::string> models_in(const fs::path& folder, const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names)
    if (has_entry(folder / name / "config.json")) found.push_back(name);
  return found;
}

[[noreturn]] void refuse(const fs::path& place, const std::string& expected, const std::string& got) {
  throw CheckpointError(cat(place.string(), ": expected ", expected, ", got ", got));
}

}  // namespace

void refuse_other_file(const fs::path& file, const char* expected) {
  const FileKind kind = kind_of(file);
  if (kind == FileKind::kGguf) refuse(file, expected, gguf_text(file));
  if (kind == FileKind::kPointer) refuse(file, expected, kPointerText);
}

void refuse_no_config(const fs::path& file) {
  if (kind_of(file) != FileKind::kOther) refuse_place(file);
}

void refuse_place(const fs::path& place) {
  refuse(place, "a model folder", has_entry(place) ? file_text(place) : missing_text(place));
}

void refuse_folder(const fs::path& folder) {
  const std::vector<std::string> names = folder_names(folder);
  if (has(names, "adapter_config.json"))
    refuse(folder, "a model folder",
           cat("an adapter of PEFT's; lancet apply ", folder.string(), " --to MODEL --out DIR makes the model of it"));
  if (const std::string name = name_ending(names, ".gguf"); !name.empty())
    refuse(folder, "a model folder", cat("a folder with ", gguf_text(folder / name)));
  const fs::path named = (folder / "").lexically_normal().parent_path();
  if (const fs::path model = fs::path(named).replace_extension();
      named.extension() == ".edits" && kind_of(model) == FileKind::kGguf)
    refuse(folder, "a model folder", cat("the edits of ", model.string(), ": name that file"));
  if (has(names, "blobs") && has(names, "manifests"))
    refuse(folder, "a model folder",
           "Ollama's store: name the file of one model, a GGUF, which the line FROM of ollama show MODEL --modelfile "
           "says");
  if (has(names, "params.json"))
    refuse(folder, "a file config.json in the model folder",
           cat("params.json, of the model's first publishers; take the folder in the form of transformers", kHub));
  if (const std::vector<std::string> inner = models_in(folder, names); !inner.empty())
    refuse(folder, "a file config.json in the model folder",
           cat("none, but in ", join(inner), " below it: name ", inner.size() == 1 ? "that folder" : "one of them"));
  refuse(folder, "a file config.json in the model folder",
         "none; name the folder that holds config.json and the weights");
}

void refuse_weights(const fs::path& folder) {
  const std::string expected = cat(kWeightsFile, " or ", kIndexFile);
  const std::vector<std::string> names = folder_names(folder);
  if (has(names, "qmodel.pt"))
    refuse(folder, expected,
           "qmodel.pt, weights that HQQ has packed, which lancet does not read; take the model that is not quantised");
  for (const std::string_view ending : {".bin", ".pth", ".pt"}) {
    const std::string name = name_ending(names, ending);
    if (name.empty() || (ending == ".bin" && !name.starts_with("pytorch_model"))) continue;
    refuse_other_file(folder / name, "weights");
    refuse(folder, expected,
           cat(name, ", which is not in the safetensors format; convert it in Python:\n",
               "  from transformers import AutoModelForCausalLM\n  AutoModelForCausalLM.from_pretrained('",
               folder.string(), "', torch_dtype='auto').save_pretrained('OUT', safe_serialization=True)"));
  }
  if (const std::string name = name_ending(names, ".gguf"); !name.empty())
    refuse(folder, expected, cat(name, ", ", gguf_text(folder / name)));
  if (has(names, "adapter_config.json"))
    refuse(folder, expected,
           cat("an adapter of PEFT's beside a config.json; lancet apply ", folder.string(),
               " --to MODEL --out DIR makes the model of it"));
  if (const std::string name = name_ending(names, ".safetensors"); !name.empty())
    refuse(folder, expected, name + " without an index; download the model again, with its index");
  for (const std::string_view ending : {".h5", ".msgpack", ".onnx"})
    if (const std::string name = name_ending(names, ending); !name.empty())
      refuse(folder, expected, cat(name, ", weights for another program; take the model's safetensors", kHub));
  refuse(folder, expected, "no weights at all; download the model again");
}

}  // namespace lancet
