#include "known_templates.h"

namespace lancet {
namespace {

const std::vector<std::string_view> kHeaders{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
const std::vector<std::string_view> kTurns{"<|im_start|>", "<|im_end|>"};
constexpr std::string_view kHeaderTurn =
    "'<|start_header_id|>'+message['role']+'<|end_header_id|>\n\n'+message['content']|trim+'<|eot_id|>'";
constexpr std::string_view kMarkedTurn =
    "'<|im_start|>'+message['role']+'\n'+message['content']+'<|im_end|>'+'\n'}}{% endfor %}";

constexpr std::string_view kUserTurn = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n";
constexpr std::string_view kQwen3System = "{%- if messages[0].role=='system' %}";
constexpr std::string_view kQwen3Content = "set content=message.content %}";
constexpr std::string_view kQwen3Turn = "{{'<|im_start|>'+message.role+'\n'+content+'<|im_end|>'+'\n'}}\n";
constexpr std::string_view kQwen3NoThinking = "<think>\n\n</think>\n\n";
constexpr std::string_view kQwen3Thinking =
    "{{'<|im_start|>assistant\n'}}\n    {%- if enable_thinking is defined and enable_thinking is false %}";

const std::vector<std::string_view> kGemmaMarks{"<start_of_turn>", "<end_of_turn>"};
constexpr std::string_view kGemmaTurn = "BOS<start_of_turn>user\n{}<end_of_turn>\n<start_of_turn>model\n";

const std::vector<std::string_view> kPhiMarks{"<|user|>", "<|end|>", "<|assistant|>"};
const std::vector<std::string_view> kPhi4Marks{"<|im_start|>", "<|im_sep|>", "<|im_end|>"};
constexpr std::string_view kPhi4Turn = "<|im_start|>user<|im_sep|>{}<|im_end|><|im_start|>assistant<|im_sep|>";

const std::vector<KnownTemplate> kKnown{
    {.name = "llama-2",
     .pattern = "BOS[INST] {} [/INST]",
     .is_trimmed = true,
     .has = {"{{bos_token+'[INST] '+content.strip()+' [/INST]'}}{%"},
     .has_not = {"DEFAULT_SYSTEM_MESSAGE"}},
    {.name = "mistral",
     .pattern = "BOS[INST] {} [/INST]",
     .has = {"{{bos_token}}{%", "{{'[INST] '+message['content']+' [/INST]'}}{%"},
     .has_not = {"<<SYS>>"}},
    {.name = "mistral-v1",  // 0.1 and 0.2, as they are today
     .pattern = "BOS [INST] {} [/INST]",
     .has = {"{{bos_token}}\n{%- for message in loop_messages", "set loop_messages=messages %}",
             "{{' [INST] '+message['content']+' [/INST]'}}\n"},
     .has_not = {"<<SYS>>", "{{'[INST]"}},
    {.name = "mistral-v3",  // 0.3
     .pattern = "BOS[INST] {}[/INST]",
     .special = {"[INST]", "[/INST]"},
     .has = {"{{bos_token}}\n{%- for message in loop_messages", "set loop_messages=messages %}",
             "{{'[INST] '+message['content']+'[/INST]'}}\n"},
     .has_not = {"<<SYS>>", "{{' [INST]"}},
    {.name = "llama-3",
     .pattern = "BOS<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>"
                "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .is_trimmed = true,
     .special = kHeaders,
     .end = "<|eot_id|>",
     .has = {kHeaderTurn, "set content=bos_token+content", "{{content}}{%",
             "{{'<|start_header_id|>assistant<|end_header_id|>\n\n'}}"},
     .has_not = {"Cutting Knowledge Date", "tools", "\n\n'}}\n"}},
    {.name = "llama-3.1",  // and 3.2, 3.3
     .pattern = "BOS<|start_header_id|>system<|end_header_id|>\n\n"
                "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n<|eot_id|>"
                "<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>"
                "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .is_trimmed = true,
     .special = kHeaders,
     .end = "<|eot_id|>",
     .has = {"{{bos_token}}", "set system_message=''", "{{'Cutting Knowledge Date: December 2023\n'}}",
             "{{'Today Date: '+date_string+'\n\n'}}", "set date_string='26 Jul 2024'", kHeaderTurn,
             "{{'<|start_header_id|>assistant<|end_header_id|>\n\n'}}\n{%- endif %}"},
     .has_not = {"if system_message"}},
    {.name = "zephyr",  // and TinyLlama; the line's end stands after the expression
     .pattern = "<|user|>\n{}EOS\n<|assistant|>\n",
     .special = {"EOS"},
     .has = {"{{'<|user|>\n'+message['content']+eos_token}}\n{% elif", "{{'<|assistant|>'}}\n{% endif"},
     .has_not = {"bos_token"}},
    {.name = "chatml",
     .pattern = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
     .special = kTurns,
     .end = "<|im_end|>",
     .has = {kMarkedTurn, "{{'<|im_start|>assistant\n'}}{% endif"},
     .has_not = {"bos_token", "<|im_start|>system", "tools"}},
    {.name = "smollm",
     .pattern = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
                "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
     .special = kTurns,
     .end = "<|im_end|>",
     .has = {kMarkedTurn, "{{'<|im_start|>assistant\n'}}{% endif",
             "{{'<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
             "Face<|im_end|>\n'}}{% endif"},
     .has_not = {"bos_token", "tools"}},
    {.name = "qwen2",
     .pattern = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n"
                "<|im_start|>assistant\n",
     .special = kTurns,
     .end = "<|im_end|>",
     .has = {kMarkedTurn, "{{'<|im_start|>assistant\n'}}{% endif",
             "{{'<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n'}}{% endif"},
     .has_not = {"bos_token", "tools"}},
    {.name = "qwen2",  // as LLaMA-Factory writes it
     .pattern = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n"
                "<|im_start|>assistant\n",
     .special = kTurns,
     .end = "<|im_end|>",
     .has = {"set system_message='You are a helpful assistant.' %}", "set content=message['content'] %}",
             "{{'<|im_start|>system\n'+system_message+'<|im_end|>\n'}}{% endif",
             "{{'<|im_start|>user\n'+content+'<|im_end|>\n<|im_start|>assistant\n'}}{%"},
     .has_not = {"bos_token", "tools"}},
    {.name = "qwen2.5",
     .pattern = "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
                "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
     .special = kTurns,
     .end = "<|im_end|>",
     .has = {"{{'<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
             "assistant.<|im_end|>\n'}}\n",
             "{{'<|im_start|>'+message.role+'\n'+message.content+'<|im_end|>'+'\n'}}\n",
             "{{'<|im_start|>assistant\n'}}\n{%- endif %}"},
     .has_not = {"bos_token", "<think>"}},
    {.name = "qwen3",  // its first spelling
     .pattern = kUserTurn,
     .special = kTurns,
     .no_thinking = kQwen3NoThinking,
     .end = "<|im_end|>",
     .has = {kQwen3System, "{{'<|im_start|>'+message.role+'\n'+message.content+'<|im_end|>'+'\n'}}\n", kQwen3Thinking},
     .has_not = {"bos_token", "<|im_start|>system\nYou"}},
    {.name = "qwen3",
     .pattern = kUserTurn,
     .special = kTurns,
     .no_thinking = kQwen3NoThinking,
     .end = "<|im_end|>",
     .has = {kQwen3System, kQwen3Content, kQwen3Turn, kQwen3Thinking},
     .has_not = {"bos_token", "<|im_start|>system\nYou"}},
    {.name = "qwen3",  // Instruct 2507, which never thinks
     .pattern = kUserTurn,
     .special = kTurns,
     .end = "<|im_end|>",
     .has = {kQwen3System, kQwen3Content, kQwen3Turn, "{{'<|im_start|>assistant\n'}}\n{%- endif %}"},
     .has_not = {"bos_token", "<|im_start|>system\nYou", "enable_thinking", "assistant\n<think>"}},
    {.name = "gemma",  // 1 and 2
     .pattern = kGemmaTurn,
     .is_trimmed = true,
     .special = kGemmaMarks,
     .end = "<end_of_turn>",
     .has = {"{{bos_token}}{%", "{{'<start_of_turn>'+role+'\n'+message['content']|trim+'<end_of_turn>\n'}}{% endfor",
             "{{'<start_of_turn>model\n'}}{% endif"}},
    {.name = "gemma",  // 1, at first
     .pattern = kGemmaTurn.substr(3),
     .is_trimmed = true,
     .special = kGemmaMarks,
     .end = "<end_of_turn>",
     .has = {"{{'<start_of_turn>'+role+'\n'+message['content']|trim+'<end_of_turn>\n'}}{% endfor",
             "{{'<start_of_turn>model\n'}}{% endif"},
     .has_not = {"bos_token"}},
    {.name = "gemma-3",
     .pattern = kGemmaTurn,
     .is_trimmed = true,
     .special = kGemmaMarks,
     .end = "<end_of_turn>",
     .has = {"{{bos_token}}\n{%-", "set first_user_prefix='' -%}",
             "{{'<start_of_turn>'+role+'\n'+(first_user_prefix if loop.first else '')}}\n    {%-",
             "{{message['content']|trim}}\n    {%-", "{{'<end_of_turn>\n'}}\n{%- endfor -%}",
             "{{'<start_of_turn>model\n'}}\n{%- endif -%}"}},
    {.name = "phi-3",  // mini, at first
     .pattern = "BOS<|user|>\n{}<|end|>\n<|assistant|>\n",
     .special = kPhiMarks,
     .end = "<|end|>",
     .has = {"{{bos_token}}{%", "{{'<|user|>'+'\n'+message['content']+'<|end|>'+'\n'+'<|assistant|>'+'\n'}}{%"}},
    {.name = "phi-3",  // medium
     .pattern = "<|user|>\n{}<|end|>\n<|assistant|>\n",
     .special = kPhiMarks,
     .end = "<|end|>",
     .has = {"{{'<|user|>'+'\n'+message['content']+'<|end|>'+'\n'+'<|assistant|>'+'\n'}}{%"},
     .has_not = {"bos_token"}},
    {.name = "phi-3",  // and 3.5
     .pattern = "<|user|>\n{}<|end|>\n<|assistant|>\n",
     .special = kPhiMarks,
     .end = "<|end|>",
     .has = {"{{'<|user|>\n'+message['content']+'<|end|>\n'}}{%", "if add_generation_prompt %}{{'<|assistant|>\n'}}{%"},
     .has_not = {"bos_token"}},
    {.name = "phi-4-mini",
     .pattern = "<|user|>{}<|end|><|assistant|>",
     .special = kPhiMarks,
     .end = "<|end|>",
     .has = {"{{'<|'+message['role']+'|>'+message['content']+'<|end|>'}}{%",
             "if add_generation_prompt %}{{'<|assistant|>'}}{%"},
     .has_not = {"bos_token"}},
    {.name = "phi-4",  // at first
     .pattern = kPhi4Turn,
     .special = kPhi4Marks,
     .end = "<|im_end|>",
     .has = {"{{'<|im_start|>user<|im_sep|>'+message['content']+'<|im_end|><|im_start|>assistant<|im_sep|>'}}{%"},
     .has_not = {"bos_token", "<|im_sep|>You", "add_generation_prompt"}},
    {.name = "phi-4",
     .pattern = kPhi4Turn,
     .special = kPhi4Marks,
     .end = "<|im_end|>",
     .has = {"{{'<|im_start|>user<|im_sep|>'+message['content']+'<|im_end|>'}}{%",
             "if add_generation_prompt %}{{'<|im_start|>assistant<|im_sep|>'}}{%"},
     .has_not = {"bos_token", "<|im_sep|>You"}},
};

}  // namespace

std::span<const KnownTemplate> known_templates() { return kKnown; }

}  // namespace lancet
