// Chat templates: which one a folder has, what it makes of a text, and that special tokens become their ids.
#include "lancet/text/chat_template.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "lancet/core/error.h"
#include "support/text_fixture.h"

namespace lancet {
namespace {

using nlohmann::json;
using testing::contains;
using testing::error_of;
using testing::TempDir;
using testing::tiny_spec;
using testing::write_file;

/// A folder with this template in its tokenizer_config.json.
struct TemplateFolder : TempDir {
  explicit TemplateFolder(const json& chat_template) {
    const json config{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"chat_template", chat_template}};
    write_file(path() / "tokenizer_config.json", config.dump());
  }
};

const std::string kChatMl =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
const std::string kZephyr =
    "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\\n' + message['content'] + "
    "eos_token }}\n{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\\n' + message['content'] + eos_token "
    "}}\n{% endif %}\n{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}";
const std::string kLlama2 =
    "{% for message in messages %}{% set content = message['content'] %}{% if message['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% endif %}{% endfor %}";

TEST(ChatTemplate, GivesTheTextOfTheModelsTemplate) {
  for (const auto& [jinja, wrapped] :
       {std::pair{kChatMl, "<|im_start|>user\n Hi \n<|im_end|>\n<|im_start|>assistant\n"},
        std::pair{kZephyr, "<|user|>\n Hi \n</s>\n<|assistant|>\n"}, std::pair{kLlama2, "<s>[INST] Hi [/INST]"}}) {
    const TemplateFolder folder(jinja);
    const ChatTemplate chat = ChatTemplate::of(folder.path());
    EXPECT_EQ(chat.name(), "the model's");
    EXPECT_EQ(chat.wrap(" Hi \n"), wrapped);
  }
  EXPECT_EQ(ChatTemplate::of(TemplateFolder(kLlama2).path()).wrap(" \n"), "<s>[INST]  [/INST]");
}

/// Was taken for the known ChatML, without its opening.
TEST(ChatTemplate, KeepsAnOpeningOfItsOwn) {
  const TemplateFolder folder("{% if messages[0]['role'] != 'system' %}{{ 'You are Ada.\n' }}{% endif %}" + kChatMl);
  EXPECT_EQ(ChatTemplate::of(folder.path()).wrap("Hi"),
            "You are Ada.\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, RendersAConversation) {
  const std::vector<ChatMessage> messages{
      {"system", "Be brief."}, {"user", "Hi"}, {"assistant", "Ho"}, {"user", "Why?"}};
  const std::string text = ChatTemplate::of(TemplateFolder(kChatMl).path()).render(messages);
  EXPECT_EQ(
      text,
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHo<|im_end|>\n"
      "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n");
  const ChatTemplate single = ChatTemplate::of(TemplateFolder(kLlama2).path());
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { single.render(messages); }), {"leaves out message 1", "system"}));
  EXPECT_TRUE(contains(error_of<ConfigError>([&] { ChatTemplate::by_hand("U: {}").render(messages); }),
                       {"expected one, got 4"}));
  const TemplateFolder strict("{% if messages|length > 1 %}\n{{ raise_exception('One question!') }}{% endif %}" +
                              kChatMl);
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { ChatTemplate::of(strict.path()).render(messages); }),
                       {"refuses these messages: One question! (", "line 2)"}));
}

TEST(ChatTemplate, IsTheDefaultOneOfSeveralAndThatOfItsOwnFileFirst) {
  const TemplateFolder folder(
      json::array({{{"name", "tool_use"}, {"template", "?"}}, {{"name", "default"}, {"template", kLlama2}}}));
  EXPECT_EQ(ChatTemplate::of(folder.path()).wrap("Hi"), "<s>[INST] Hi [/INST]");
  write_file(folder / "chat_template.jinja", kChatMl);
  EXPECT_TRUE(ChatTemplate::of(folder.path()).wrap("Hi").starts_with("<|im_start|>"));
}

TEST(ChatTemplate, WhatCannotBeUsedIsRefusedWithWhatToDo) {
  for (const auto& [jinja, part] : std::initializer_list<std::pair<const char*, const char*>>{
           {"a\n{{ messages|nofilter }}", "line 2: |nofilter"},
           {"{{ bos_token }}", "got it 0 times"},
           {"{{ messages[0].content }}{{ messages[0].content }}", "got it 2 times"},
           {"{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "makes more than"}}) {
    const TemplateFolder folder(jinja);
    EXPECT_TRUE(contains(error_of<TokenizerError>([&] { ChatTemplate::of(folder.path()); }),
                         {"tokenizer_config.json", part, "--chat-template", "{}"}));
  }
  const TempDir bare;
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { ChatTemplate::of(bare.path()); }),
                       {"no chat_template.jinja", "instruct model", "--chat-template"}));
  const TemplateFolder nameless(json::array({{{"name", "tool_use"}, {"template", "?"}}}));
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { ChatTemplate::of(nameless.path()); }), {"\"default\""}));
}

/// Qwen3's: the model thinks before it answers unless an empty thought is put before the answer.
const std::string kQwen3 =
    "{%- if messages[0].role == 'system' %}\n{%- endif %}\n{%- for message in messages %}\n{{- '<|im_start|>' + "
    "message.role + '\n' + message.content + '<|im_end|>' + '\n' }}\n{%- endfor %}\n{%- if add_generation_prompt %}\n"
    "    {{- '<|im_start|>assistant\n' }}\n    {%- if enable_thinking is defined and enable_thinking is false %}\n"
    "        {{- '<think>\n\n</think>\n\n' }}\n    {%- endif %}\n{%- endif %}";

TEST(ChatTemplate, LeavesThinkingOutWhereAnAnswerIsWantedAtOnce) {
  const ChatTemplate chat = ChatTemplate::of(TemplateFolder(kQwen3).path());
  const std::string turns = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(chat.wrap("Hi"), turns);
  EXPECT_EQ(chat.wrap("Hi", Thinking::kNone), turns + "<think>\n\n</think>\n\n");
  const ChatTemplate other = ChatTemplate::of(TemplateFolder(kChatMl).path());
  EXPECT_EQ(other.wrap("Hi", Thinking::kNone), other.wrap("Hi"));
}

/// QwQ's and R1's: nothing turns it off.
TEST(ChatTemplate, ClosesAThoughtThatTheTemplateOpens) {
  const TemplateFolder folder("{{ messages[0].content }}{% if add_generation_prompt %}{{ '<A><think>\n' }}{% endif %}");
  const ChatTemplate chat = ChatTemplate::of(folder.path());
  EXPECT_EQ(chat.wrap("Hi"), "Hi<A><think>\n");
  EXPECT_EQ(chat.wrap("Hi", Thinking::kNone), "Hi<A><think>\n\n</think>\n\n");
  EXPECT_EQ(chat.end_of_thoughts(), "</think>");
  const TemplateFolder other("{{ messages[0].content }}{{ '<seed:think>' if thinking is not defined or thinking }}");
  EXPECT_EQ(ChatTemplate::of(other.path()).wrap("Hi", Thinking::kNone), "Hi");
  EXPECT_EQ(ChatTemplate::of(other.path()).wrap("Hi", Thinking::kWanted), "Hi<seed:think>");
  EXPECT_EQ(ChatTemplate::of(other.path()).end_of_thoughts(), "</seed:think>");
}

TEST(ChatTemplate, TellsTheDayOfSourceDateEpoch) {
  const TemplateFolder folder("{{ strftime_now('%d %B %Y') }} {{ messages[0].content }}");
  setenv("SOURCE_DATE_EPOCH", "1750000000", 1);
  EXPECT_EQ(ChatTemplate::of(folder.path()).wrap("Hi"), "15 June 2025 Hi");
  setenv("SOURCE_DATE_EPOCH", "x", 1);
  EXPECT_THROW(ChatTemplate::of(folder.path()), ConfigError);
  unsetenv("SOURCE_DATE_EPOCH");
  EXPECT_NE(ChatTemplate::of(folder.path()).wrap("Hi"), "15 June 2025 Hi");
}

TEST(ChatTemplate, AsAContextDoesNotDependOnThePrompt) {
  const auto tokenizer = testing::open_spec(tiny_spec());
  const TemplateFolder folder("{{ messages[0].content|length }} {{ messages[0].content }}");
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { ChatTemplate::of(folder.path()).context(*tokenizer); }),
                       {"does not depend on it"}));
}

TEST(ChatTemplate, AsAContextHasTheIdsOfAChat) {
  const auto tokenizer = testing::open_spec(tiny_spec());
  for (const char* pattern : {"USER: {} ASSISTANT:", "<s>USER: {}\n"}) {
    const ChatTemplate chat = ChatTemplate::by_hand(pattern);
    std::string text = chat.context(*tokenizer);
    EXPECT_EQ(text, std::string(pattern).substr(std::string(pattern).find('U'))) << "BOS is the tokenizer's";
    text.replace(text.find("{}"), 2, "Hi");
    EXPECT_EQ(tokenizer->ids(text), chat.ids(*tokenizer, "Hi")) << pattern;
  }
  EXPECT_THROW(ChatTemplate::of(TemplateFolder(kChatMl).path()).context(*tokenizer), TokenizerError);
}

TEST(ChatTemplate, ByHandHasOnePlace) {
  EXPECT_EQ(ChatTemplate::by_hand("USER: {} ASSISTANT:").wrap("Hi {}"), "USER: Hi {} ASSISTANT:");
  for (const char* pattern : {"USER:", "{} {}", ""})
    EXPECT_TRUE(contains(error_of<ConfigError>([&] { ChatTemplate::by_hand(pattern); }), {"exactly one {}"}));
}

TEST(ChatTemplate, BosStandsOnce) {
  const auto tokenizer = testing::open_spec(tiny_spec());
  const std::vector<TokenId> plain = tokenizer->ids("Paris");
  ASSERT_EQ(plain.front(), 1);
  EXPECT_EQ(ChatTemplate::by_hand("{}").ids(*tokenizer, "Paris"), plain);
  EXPECT_EQ(ChatTemplate::by_hand("<s>{}").ids(*tokenizer, "Paris"), plain);
}

TEST(ChatTemplate, SpecialTokensBecomeTheirIds) {
  json spec = tiny_spec();
  const TemplateFolder folder(kChatMl);
  const ChatTemplate chat = ChatTemplate::of(folder.path());
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { chat.ids(*testing::open_spec(spec), "Paris"); }),
                       {"the model's", "<|im_start|>", "into pieces", "tokenizer.json"}));
  int id = static_cast<int>(spec["model"]["vocab"].size());
  const int start = id, end = id + 1;
  for (const char* token : {"<|im_start|>", "<|im_end|>"})
    spec["added_tokens"].push_back({{"id", id++},
                                    {"content", token},
                                    {"single_word", false},
                                    {"lstrip", false},
                                    {"rstrip", false},
                                    {"normalized", false},
                                    {"special", true}});
  const auto tokenizer = testing::open_spec(spec);
  const std::vector<TokenId> ids = chat.ids(*tokenizer, "Paris");
  EXPECT_EQ(ids[0], 1);
  EXPECT_EQ(ids[1], start);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), start), 2);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), end), 1);
  EXPECT_EQ(chat.end_ids(*tokenizer), std::vector<TokenId>{end});
  EXPECT_TRUE(ChatTemplate::of(TemplateFolder(kLlama2).path()).end_ids(*tokenizer).empty());
}

}  // namespace
}  // namespace lancet
