// File names of a model folder in Hugging Face layout.
#pragma once

#include <array>

namespace lancet {

inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kIndexFile = "model.safetensors.index.json";
inline constexpr const char* kGgufFile = "model.gguf";  ///< the one in an output folder

/// What an exported folder has besides weights and index, where the base has it.
inline constexpr std::array kSidecarFiles{"config.json",
                                          "generation_config.json",
                                          "tokenizer.json",
                                          "tokenizer.model",
                                          "tokenizer_config.json",
                                          "special_tokens_map.json",
                                          "added_tokens.json",
                                          "vocab.json",
                                          "merges.txt",
                                          "chat_template.json",
                                          "chat_template.jinja"};

}  // namespace lancet
