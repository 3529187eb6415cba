"""Lets a model put the facts of a request file in other words, and adds these as `rewordings`, in which lancet edits the facts too.

    .venv/bin/python tools/reword_requests.py --model MODEL facts.json --out reworded.json

The model reads some sentences with their rewordings, and the fact with its true answer, and goes on from the subject. A text in which the answer
comes back is cut there: what stands before is another wording of the prompt. Those after which the answer is likeliest are kept. A wording that is
among the record's paraphrases is left out, because paraphrases are what a fact is measured on.

Records are lancet's own ({prompt, subject, target, target_true}) or CounterFact's; those without a true answer, or with `rewordings`, stay as they
are. Needs transformers. The same seed gives the same file on the same machine.
"""
import argparse
import json
import math
import re
import sys
from pathlib import Path

# (prompt, its subject, its answer, what follows the subject in other words)
SHOWN = [
    ("The Eiffel Tower is located in the city of", "Eiffel Tower", "Paris", "stands in the city of"),
    ("The mother tongue of Akira Kurosawa is", "Akira Kurosawa", "Japanese", "was a native speaker of"),
    ("Marie Curie worked in the field of", "Marie Curie", "physics", "made discoveries in"),
    ("The Model T was created by", "Model T", "Ford", "was a product of"),
    ("The official religion of Thailand is", "Thailand", "Buddhism", "has as its main religion"),
]
FEWEST_WORDS = 2  # after the subject: "{} is" says too little
LEAST_LOG_PROBABILITY = -4.5  # of the answer after a wording
NO_LAST_WORDS = ("a", "an", "the")  # after these an answer is another one


def introduction(prompt, subject, answer):
    sentences = [f"Sentence: {shown} {its}.\nThe same in other words: {of} {words} {its}.\n\n" for shown, of, its, words in SHOWN]
    return "".join(sentences) + f"Sentence: {prompt} {answer}.\nThe same in other words: {subject}"


def wording(text, answer):
    """What stands between subject and answer, with {} for the subject; None where the text is no wording of the fact."""
    line = text.split("\n")[0]
    found = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", line)
    if not found:
        return None
    words = line[: found.start()].rstrip()
    if "{" in words or "}" in words or len(words.split()) < FEWEST_WORDS or words.split()[-1].lower() in NO_LAST_WORDS:
        return None
    return "{}" + words


def fields(record):
    """Prompt with {}, subject, true answer and paraphrases of a record; None where it lacks one of the first three."""
    of_counterfact = record.get("requested_rewrite")
    fact = of_counterfact or record
    prompt, subject = fact.get("prompt"), fact.get("subject")
    answer = fact.get("target_true", fact.get("ground_truth"))
    answer = answer.get("str") if isinstance(answer, dict) else answer[0] if isinstance(answer, list) and answer else answer
    if not (prompt and subject and answer):
        return None
    paraphrases = record.get("paraphrase_prompts" if of_counterfact else "paraphrases") or []
    paraphrases = [paraphrases] if isinstance(paraphrases, str) else paraphrases
    return prompt, subject, answer, {text.replace("{}", subject) for text in paraphrases}


class Writer:
    def __init__(self, folder, arguments):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.manual_seed(arguments.seed)
        torch.set_num_threads(arguments.threads or torch.get_num_threads())
        self.torch, self.arguments = torch, arguments
        self.net = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)

    def texts(self, prompt):
        inputs = self.tokenizer(prompt, return_tensors="pt")
        with self.torch.inference_mode():
            ids = self.net.generate(**inputs, do_sample=True, temperature=0.8, top_k=20, max_new_tokens=12,
                                    num_return_sequences=self.arguments.samples, pad_token_id=self.tokenizer.eos_token_id or 0)  # fmt: skip
        return [self.tokenizer.decode(row[inputs["input_ids"].shape[1] :], skip_special_tokens=True) for row in ids]

    def log_probability(self, prompt, answer):
        """Of the answer's first token."""
        before = self.tokenizer(prompt, return_tensors="pt")
        first = self.tokenizer(f"{prompt} {answer}")["input_ids"][before["input_ids"].shape[1]]
        with self.torch.inference_mode():
            return self.torch.log_softmax(self.net(**before).logits[0, -1].double(), -1)[first].item()

    def rewordings(self, prompt, subject, answer, left_out):
        plain = prompt.replace("{}", subject)
        found = {wording(text, answer) for text in self.texts(introduction(plain, subject, answer))} - {None, prompt}
        likely = []
        for text in sorted(found):
            filled = text.replace("{}", subject)
            log_probability = self.log_probability(filled, answer)
            if filled not in left_out | {plain} and math.isfinite(log_probability) and log_probability >= LEAST_LOG_PROBABILITY:
                likely.append((-log_probability, text))
        return [text for _, text in sorted(likely)[: self.arguments.count]]


def read_records(path):
    text = path.read_text(encoding="utf-8")
    records = json.loads(text) if text.lstrip().startswith("[") else [json.loads(line) for line in text.splitlines() if line.strip()]
    if not all(isinstance(record, dict) for record in records):
        sys.exit(f"{path}: expected a list of records, or a record in each line")
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("requests", type=Path, help="JSON or JSON Lines, of lancet's own records or CounterFact's")
    parser.add_argument("--model", required=True, type=Path, help="model folder")
    parser.add_argument("--out", required=True, type=Path, help="file to write, as JSON")
    parser.add_argument("--count", type=int, default=3, help="most wordings of a fact (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=6, help="texts that the model writes for a fact (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0, help="default: as many as torch takes")
    arguments = parser.parse_args()
    records = read_records(arguments.requests)
    writer = Writer(arguments.model, arguments)
    reworded = 0
    for number, record in enumerate(records, 1):
        known = fields(record)
        if known and "rewordings" not in record:
            record["rewordings"] = writer.rewordings(*known)
        reworded += bool(record.get("rewordings"))
        print(f"{number} of {len(records)} facts, {reworded} of them in other words", file=sys.stderr, flush=True)
    unfinished = arguments.out.with_suffix(arguments.out.suffix + ".unfinished")
    unfinished.write_text(json.dumps(records, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(arguments.out)


if __name__ == "__main__":
    main()
