// GGUF files made by hand, by the definition of the format: nothing here uses the code under test.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lancet::testing {

template <typename Number>
std::string raw(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

inline std::string gguf_text(std::string_view text) { return raw<uint64_t>(text.size()) + std::string(text); }

inline std::string u32_entry(std::string_view key, uint32_t number) {
  return gguf_text(key) + raw<uint32_t>(4) + raw(number);
}
inline std::string f32_entry(std::string_view key, float number) {
  return gguf_text(key) + raw<uint32_t>(6) + raw(number);
}
inline std::string bool_entry(std::string_view key, bool flag) {
  return gguf_text(key) + raw<uint32_t>(7) + raw<uint8_t>(flag ? 1 : 0);
}
inline std::string text_entry(std::string_view key, std::string_view text) {
  return gguf_text(key) + raw<uint32_t>(8) + gguf_text(text);
}
inline std::string texts_entry(std::string_view key, const std::vector<std::string>& texts) {
  std::string entry = gguf_text(key) + raw<uint32_t>(9) + raw<uint32_t>(8) + raw<uint64_t>(texts.size());
  for (const std::string& text : texts) entry += gguf_text(text);
  return entry;
}
inline std::string i32s_entry(std::string_view key, const std::vector<int32_t>& numbers) {
  std::string entry = gguf_text(key) + raw<uint32_t>(9) + raw<uint32_t>(5) + raw<uint64_t>(numbers.size());
  for (const int32_t number : numbers) entry += raw(number);
  return entry;
}

/// A tensor's place; sizes as the file has them: the innermost first.
inline std::string tensor_info(std::string_view name, const std::vector<uint64_t>& sizes, uint32_t type,
                               uint64_t offset) {
  std::string info = gguf_text(name) + raw(static_cast<uint32_t>(sizes.size()));
  for (const uint64_t size : sizes) info += raw(size);
  return info + raw(type) + raw(offset);
}

inline std::string gguf_file(const std::vector<std::string>& metadata, const std::vector<std::string>& tensors,
                             std::string_view data, uint32_t version = 3) {
  std::string file = "GGUF" + raw(version) + raw<uint64_t>(tensors.size()) + raw<uint64_t>(metadata.size());
  for (const std::string& entry : metadata) file += entry;
  for (const std::string& info : tensors) file += info;
  file.resize((file.size() + 31) / 32 * 32, '\0');
  return file + std::string(data);
}

/// What a small Llama's file says, with a byte-level tokenizer.
inline std::vector<std::string> small_llama() {
  return {text_entry("general.architecture", "llama"),
          u32_entry("llama.block_count", 1),
          u32_entry("llama.embedding_length", 32),
          u32_entry("llama.feed_forward_length", 64),
          u32_entry("llama.attention.head_count", 4),
          u32_entry("llama.attention.head_count_kv", 2),
          u32_entry("llama.context_length", 128),
          f32_entry("llama.attention.layer_norm_rms_epsilon", 1e-5F),
          f32_entry("llama.rope.freq_base", 5e5F),
          text_entry("tokenizer.ggml.model", "gpt2"),
          text_entry("tokenizer.ggml.pre", "smollm"),
          texts_entry("tokenizer.ggml.tokens", {"<s>", "a", "b", "ab", "\xC4\xA0"}),
          i32s_entry("tokenizer.ggml.token_type", {3, 1, 1, 1, 1}),
          texts_entry("tokenizer.ggml.merges", {"a b"}),
          u32_entry("tokenizer.ggml.bos_token_id", 0),
          u32_entry("tokenizer.ggml.eos_token_id", 0),
          text_entry("tokenizer.chat_template", "{{ messages[0].content }}")};
}

/// Its tensors: an embedding of Q8_0, Q of F32 and a norm.
inline std::string small_llama_file() {
  const std::vector<std::string> tensors{tensor_info("token_embd.weight", {32, 5}, 8, 0),
                                         tensor_info("blk.0.attn_q.weight", {32, 32}, 0, 192),
                                         tensor_info("output_norm.weight", {32}, 0, 192 + 4096)};
  std::string data(192 + 4096 + 128, '\0');
  for (uint32_t row = 0; row < 32; ++row) {  // each row's numbers are its number
    const auto number = raw(static_cast<float>(row));
    for (uint32_t i = 0; i < 32; ++i) data.replace(192 + (row * 32 + i) * 4, 4, number);
  }
  return gguf_file(small_llama(), tensors, data);
}

}  // namespace lancet::testing
