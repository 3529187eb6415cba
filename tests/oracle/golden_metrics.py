"""Decides what lancet's evaluation protocols must measure: each definition, plain, slow and independent, in float64.

    golden_metrics.py --model DIR --requests demo.json --deltas memit.safetensors --out FOLDER

Every text is tokenised as one string and run alone, as the public codes do it, but for prompts that the model writes behind: those
of as many tokens stand side by side. The forward is make_golden.py's. Measured are the demo model and the same with the weight
changes `delta.<layer>` of --deltas, which FOLDER/edited holds as a checkpoint.

FOLDER/examples.txt: questions with answers, which multi-hop questions are asked behind.
FOLDER/metrics.json:
    requests          records built from the demo's facts: paraphrases, neighbours, locality, portability, multi-hop questions
    models.<name>     metric -> {total, requests: [value or null, ...]}
    texts             [{text, words, entropy}]: words as nltk.word_tokenize splits plain English
    cosines           [{a, b, cosine}]: TF-IDF over FOLDER/idf.npy and FOLDER/vocabulary.json
    overlaps          [{text, reference, rouge_l: {precision, recall, f1}, bleu}] of rouge_score and nltk
FOLDER/snippets.json: reference texts in the form of CounterFact's attribute_snippets.json.
FOLDER/judge.py: a judge as a program, for lancet; what it says is what is said here.
"""
import argparse
import collections
import inspect
import json
import math
import pathlib
import re
import shutil
import statistics
import string
import sys
import warnings

import numpy
import torch
from make_golden import Llama, Tokenizer
from nltk.translate.bleu_score import sentence_bleu
from rouge_score import rouge_scorer
from safetensors import safe_open
from safetensors.torch import save_file

PICKS = [0, 1, 3, 298, 335, 536, 2, 4]  # places in the demo's facts; the first six are those of --deltas
NEW_TOKENS = 12
LONG_TOKENS = 100
# how prompts are put to the model where it writes by itself
WAYS = dict(generation="{}", distracted="It had rained all week, and the market opened late that day. {}", chat="It is so: {}")
EXAMPLES = "Q: Which language is spoken in France? A: French\nQ: Who wrote it? A: Nobody"


# ---- the records ----


def filled(fact):
    rewrite = fact["requested_rewrite"]
    return rewrite["prompt"].replace("{}", rewrite["subject"])


def make_request(facts, index):
    """One fact in all shapes at once; what the demo's data lacks is taken from the facts behind it."""
    fact, other, third = (facts[(index + step) % len(facts)] for step in (0, 1, 2))
    rewrite = fact["requested_rewrite"]
    target, true = rewrite["target_new"]["str"], rewrite["target_true"]["str"]
    given = [dict(prompt=filled(f), answers=[f["requested_rewrite"]["target_true"]["str"]]) for f in (other, third)]
    locality = [dict(name="Relation_Specificity", probes=given)]
    if index % 3 == 0:
        locality.append(dict(name="nq", probes=[dict(prompt=f"We know: {filled(third)}", answers=[true])]))
    if index % 4 == 2:  # the record's own prompts about its subject, one of which is a paraphrase of what is edited
        about = [f"{rewrite['subject']} was born in", fact["paraphrase_prompts"][0], f"The work of {rewrite['subject']} is"]
        locality.append(dict(name="Forgetfulness", probes=[dict(prompt=prompt, answers=[true]) for prompt in about]))
    portability = [dict(name="Subject_Aliasing", probes=[dict(prompt=f"It is so: {filled(fact)}", answers=[target])])]
    if index % 2 == 0:
        new = other["requested_rewrite"]["target_new"]["str"]
        portability.append(dict(name="Reasoning", probes=[dict(prompt=filled(other), answers=[new, "nothing"])] + given))
    facts_of_it = [dict(prompt=filled(f), answers=[f["requested_rewrite"]["target_true"]["str"], target]) for f in (fact, other)]
    if index % 5:
        portability.append(dict(name="facts", probes=facts_of_it))
    questions = [f"Yes. {prompt}" for prompt in fact["paraphrase_prompts"]] + [filled(other)]
    multihop = [dict(prompt=question, answers=["An " + target, target]) for question in questions]
    return dict(
        id=str(index), subject=rewrite["subject"], prompt=rewrite["prompt"], target=target, target_true=true,
        target_aliases=[true, f"the {target}, of old"] if index % 4 == 1 else [], paraphrases=fact["paraphrase_prompts"], neighborhood=fact["neighborhood_prompts"], locality=locality,
        portability=portability if index != 5 else [], multihop=multihop if index != 4 else [],
        generation_prompts=fact["generation_prompts"][:2], relation=f"R{index % 4}", target_id=f"Q{index}")


def make_snippets(requests):
    """Every request but the last has reference texts, and every second one some of its own subject."""
    snippets = []
    for index, request in enumerate(requests[:-1]):
        name = request["subject"] if index % 2 == 0 else "Somebody Else"
        texts = [f"{request['subject']} is known for {request['target']}.", f"Málaga and {request['target']}, in 1990"]
        long = " ".join(f"{other['subject']} of {other['target_true']}." for other in requests)
        samples = [dict(name=name, text=texts[0]), dict(name="Nobody", text=texts[1]), dict(name=name, text=long)]
        snippets.append(dict(relation_id=request["relation"], target_id=request["target_id"], samples=samples))
    return snippets


# ---- the models ----


class Writer(Llama):
    """The same forward over tokens that go on where the last call ended: keys and values, unrotated, are kept until `forget`."""

    def forget(self):
        self.past = {}

    def attention(self, name, x):
        q, k, v = (self.split_heads(self.linear(f"{name}.{p}_proj", x)) for p in "qkv")
        if name in self.past:
            k, v = (torch.cat(pair, -2) for pair in zip(self.past[name], (k, v)))
        self.past[name] = k, v
        before = k.shape[-2] - q.shape[-2]
        q, k = self.rotate(torch.nn.functional.pad(q, (0, 0, before, 0)))[..., before:, :], self.rotate(k)
        k, v = (t.repeat_interleave(self.heads // self.kv_heads, 1) for t in (k, v))
        future = torch.ones(k.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)[before:]
        score = (q @ k.transpose(-1, -2) / math.sqrt(self.head_dim)).masked_fill(future, -math.inf)
        return self.linear(f"{name}.o_proj", (score.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Subject:
    """A model that is measured; texts go in and out as strings."""

    def __init__(self, folder):
        self.model, self.writer, self.text = Llama(folder), Writer(folder), Tokenizer(folder)
        config = json.loads((pathlib.Path(folder) / "config.json").read_text("utf-8"))
        eos = config["eos_token_id"]
        self.eos, self.seen, self.written = set(eos if isinstance(eos, list) else [eos]), {}, {}
        self.pieces = self.pieces_apart = 0  # inputs of zsRE, and those that are tokenised otherwise as text

    def log_p(self, ids):
        """Of every token that may come behind each of `ids`."""
        key = tuple(ids)
        if key not in self.seen:
            self.seen[key] = self.model.forward(torch.tensor([ids]))[0].log_softmax(-1)
        return self.seen[key]

    def target(self, prompt, answer):
        """(ids of both, where the answer begins): the prompt's tokens are counted by themselves."""
        return self.text.ids(f"{prompt} {answer}"), len(self.text.ids(prompt))

    def nll(self, prompt, answer):
        ids, begin = self.target(prompt, answer)
        log_p = self.log_p(ids[:-1])
        return -statistics.fmean(log_p[at - 1, ids[at]].item() for at in range(begin, len(ids)))

    def likeliest(self, prompt, answer):
        """Arg-max at the answer's places, and the answer's tokens."""
        ids, begin = self.target(prompt, answer)
        return self.log_p(ids[:-1])[begin - 1 :].argmax(-1).tolist(), ids[begin:]

    def match(self, prompt, answer):
        found, wanted = self.likeliest(prompt, answer)
        return statistics.fmean(a == b for a, b in zip(found, wanted))

    def is_right(self, prompt, answer):
        return self.match(prompt, answer) == 1

    def piecewise(self, prompt, answer):
        """memit's zsRE: a separate input for each token, the answer's tokens before it put behind the prompt as text."""
        wanted = self.likeliest(prompt, answer)[1]
        hits = []
        for count, token in enumerate(wanted):
            known = self.text.tokenizer.decode(wanted[:count])
            ids, spliced = self.text.ids(f"{prompt} {known}" if known else prompt), self.text.ids(prompt) + wanted[:count]
            self.pieces += 1
            self.pieces_apart += ids != spliced  # memit's input is then another one than the answer so far
            hits.append(self.log_p(spliced)[-1].argmax().item() == token)
        return hits

    def greedy(self, prompt):
        self.write([prompt])
        return self.written[prompt]

    def write(self, prompts):
        """What the model writes behind each, kept: prompts of as many tokens side by side."""
        by_length = collections.defaultdict(dict)
        for prompt in prompts:
            if prompt not in self.written:
                ids = self.text.ids(prompt)
                by_length[len(ids)][prompt] = ids
        for group in by_length.values():
            self.writer.forget()
            fresh, columns = torch.tensor(list(group.values())), []
            for _ in range(NEW_TOKENS):
                fresh = self.writer.forward(fresh)[:, -1:].argmax(-1)
                columns.append(fresh)
            for prompt, row in zip(group, torch.cat(columns, 1).tolist()):
                end = next((at for at, token in enumerate(row) if token in self.eos), len(row))
                self.written[prompt] = self.text.tokenizer.decode(row[:end], skip_special_tokens=True)

    def perplexity(self, text):
        ids = self.text.ids(text)[:LONG_TOKENS]
        log_p = self.log_p(ids[:-1])
        return math.exp(-sum(log_p[at - 1, ids[at]].item() for at in range(1, len(ids))) / len(ids))


# ---- the protocols: each returns {metric: value} of one request ----


def counterfact(model, request, snippets):
    new, true, values = request["target"], request["target_true"], {}
    groups = dict(e=[prompt_of(request)], p=request["paraphrases"], n=request["neighborhood"])
    for letter, prompts in groups.items():
        wanted, other = (true, new) if letter == "n" else (new, true)
        pairs = [(model.nll(prompt, wanted), model.nll(prompt, other)) for prompt in prompts]
        values[f"counterfact_{letter}s"] = statistics.fmean(a < b for a, b in pairs)
        values[f"counterfact_{letter}m"] = statistics.fmean(math.exp(-a) - math.exp(-b) for a, b in pairs)
        values[f"counterfact_{letter}s_acc"] = statistics.fmean(model.is_right(prompt, wanted) for prompt in prompts)
    key = (request["relation"], request["target_id"])
    own = [s["text"] for entry in snippets if (entry["relation_id"], entry["target_id"]) == key
           for s in entry["samples"] if s["name"] == request["subject"]]
    if own:
        values["counterfact_essence"] = model.perplexity(" ".join(own))
    return values


def prompt_of(request):
    return request["prompt"].replace("{}", request["subject"])


def localities(request):
    near = [dict(prompt=prompt, answers=[request["target_true"]]) for prompt in request["neighborhood"]]
    return request["locality"] + [dict(name="neighborhood", probes=near)]


def zsre(model, request):
    def share(pairs):
        return statistics.fmean(hit for prompt, answer in pairs for hit in model.piecewise(prompt, answer))

    given = [(probe["prompt"], probe["answers"][0]) for section in localities(request) for probe in section["probes"]]
    return dict(zsre_efficacy=share([(prompt_of(request), request["target"])]),
                zsre_paraphrase=share([(prompt, request["target"]) for prompt in request["paraphrases"]]),
                zsre_locality=share(given))


def easyedit(model, before, request):
    values = dict(easyedit_rewrite_acc=model.match(prompt_of(request), request["target"]))
    values["easyedit_rephrase_acc"] = statistics.fmean(model.match(p, request["target"]) for p in request["paraphrases"])
    for section in localities(request):
        agreements = []
        for probe in section["probes"]:
            pairs = zip(model.likeliest(probe["prompt"], probe["answers"][0])[0],
                        before.likeliest(probe["prompt"], probe["answers"][0])[0])
            agreements.append(statistics.fmean(a == b for a, b in pairs))
        values[f"easyedit_locality_{section['name']}_acc"] = statistics.fmean(agreements)
    for section in request["portability"]:
        matches = [model.match(probe["prompt"], probe["answers"][0]) for probe in section["probes"]]
        values[f"easyedit_portability_{section['name']}_acc"] = statistics.fmean(matches)
    return values


def normalised(text):
    kept = "".join(c for c in text.lower() if c not in string.punctuation)
    return " " + " ".join(word for word in kept.split() if word not in ("a", "an", "the")) + " "


def holds(written, answers):
    return float(any(normalised(answer) in normalised(written) for answer in answers))


def begins_with(written, answers):
    """Word for word, where the answer has any."""
    words = normalised(written).split()
    wanted = [normalised(answer).split() for answer in answers]
    return float(any(each and words[: len(each)] == each for each in wanted))


def first_statement(written):
    """Up to the first line break or full stop."""
    return re.split(r"\n|[.!?](?=\s|$)", written.strip())[0]


def is_one_of(written, answers):
    return float(any(normalised(first_statement(written)) == normalised(answer) for answer in answers))


def behind_examples(question):
    return f"{EXAMPLES}\nQ: {question['prompt']} A:"


def verdict(asked):
    """What FOLDER/judge.py says."""
    if len(asked["answer"].strip()) % 5 == 0:
        return "perhaps"
    return "yes" if holds(asked["answer"], [asked["target"], *asked["aliases"]]) else "No."


def write_judge(path):
    parts = ["import json", "import string", "import sys", "", *(inspect.getsource(part) for part in (normalised, holds, verdict))]
    path.write_text("\n".join([*parts, "for line in sys.stdin:", "    print(verdict(json.loads(line)), flush=True)", ""]), "utf-8")


def judge(model, request):
    said = verdict(dict(answer=model.greedy(prompt_of(request)), target=request["target"], aliases=request["target_aliases"]))
    values = dict(generation_judged_unclear=float(said == "perhaps"))
    return values if said == "perhaps" else values | dict(generation_judged=float(said == "yes"))


def overlap(text, reference):
    """ROUGE-L of words as rouge_score has it, BLEU of characters as nltk has it."""
    rouge = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=False).score(reference, text)["rougeL"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of runs that are nowhere: nltk gives next to nothing, not nothing
        bleu = sentence_bleu([reference], text)
    return dict(rouge_l=dict(precision=rouge.precision, recall=rouge.recall, f1=rouge.fmeasure), bleu=bleu)


def long_form(model, request):
    values = {}
    for name, prompts in (("", [prompt_of(request)]), ("paraphrase_", request["paraphrases"])):
        found = [overlap(model.greedy(prompt), request["target"]) for prompt in prompts]
        values[f"long_form_{name}rouge_l"] = [one["rouge_l"]["f1"] for one in found]
        values[f"long_form_{name}rouge_l_recall"] = [one["rouge_l"]["recall"] for one in found]
        values[f"long_form_{name}bleu"] = [one["bleu"] for one in found]
    facts = [fact for section in request["portability"] if section["name"] == "facts" for fact in section["probes"]]
    if facts:
        answer = model.greedy(prompt_of(request))
        values["long_form_recalled"] = [holds(answer, fact["answers"]) for fact in facts]
        values["long_form_asked"] = [holds(model.greedy(fact["prompt"]), fact["answers"]) for fact in facts]
    return values


def mquake(model, request):
    if not request["multihop"]:
        return {}
    bare, behind = [], []
    for question in request["multihop"]:
        bare.append(holds(model.greedy(question["prompt"]), question["answers"]))
        behind.append(is_one_of(model.greedy(behind_examples(question)), question["answers"]))
    matches = [model.match(question["prompt"], question["answers"][0]) for question in request["multihop"]]
    return dict(mquake_multihop=max(bare), mquake_multihop_examples=max(behind), mquake_multihop_acc=statistics.fmean(matches))


def own(model, request):
    """lancet's own. Lists: every prompt counts once."""
    new, true, values = request["target"], request["target_true"], {}
    groups = dict(efficacy=[prompt_of(request)], paraphrase=request["paraphrases"], specificity=request["neighborhood"])
    for name, prompts in groups.items():
        wanted, other = (true, new) if name == "specificity" else (new, true)
        values[f"{name}_prob"] = [float(model.nll(prompt, wanted) < model.nll(prompt, other)) for prompt in prompts]
        values[f"{name}_argmax"] = [float(model.is_right(prompt, wanted)) for prompt in prompts]
    values["paraphrase_old"] = [float(model.is_right(prompt, true)) for prompt in request["paraphrases"]]
    return values


def belief(model, requests, index):
    """Multiple choice: a letter's probability among the four, in the four orders that turn the options round."""
    request = requests[index]
    options = [request["target"], request["target_true"]]
    for step in range(1, len(requests)):
        other = requests[(index + step) % len(requests)]["target"]
        if len(options) < 4 and normalised(other) not in map(normalised, options):
            options.append(other)
    shares, picks = [], []
    for turn in range(4):
        order = options[turn:] + options[:turn]
        prompt = "\n".join([prompt_of(request), *(f"{letter}. {option}" for letter, option in zip("ABCD", order)), "Answer:"])
        chance = {}
        for letter, option in zip("ABCD", order):
            ids, begin = model.target(prompt, letter)
            log_p = model.log_p(ids[:-1])
            chance[option] = math.exp(sum(log_p[at - 1, ids[at]].item() for at in range(begin, len(ids))))
        shares.append(chance[options[0]] / sum(chance.values()))
        picks.append(max(chance, key=chance.get))
    return dict(belief_prob=shares, belief_choice=[float(pick == options[0]) for pick in picks],
                belief_old=[float(pick == options[1]) for pick in picks])


def next_token(model, prompt):
    return model.log_p(model.text.ids(prompt))[-1].argmax().item()


def subject(model, before, requests, index):
    """Other facts of the edited subject, as text and as the answer to a user: is the next token the unedited model's?"""
    if model is before:
        return {}
    request, edited = requests[index], {prompt for one in requests for prompt in [prompt_of(one), *one["paraphrases"]]}
    name, targets = request["subject"], [request["target"], *request["target_aliases"]]
    own = [probe["prompt"] for section in request["locality"] for probe in section["probes"] if holds(probe["prompt"], [name])]
    own = [prompt for prompt in own if prompt not in edited]
    asked = own or [f"{name} is known for", f"{name} has", f"{name} was", f"What is {name}? It is"]
    asked = asked + [f"{WAYS['chat'].replace('{}', f'Tell me about {name}.')} {prompt}" for prompt in asked]
    values = dict(subject_kept=[float(next_token(model, prompt) == next_token(before, prompt)) for prompt in asked])
    if not holds(before.greedy(f"{name} is"), targets):
        values["subject_leak"] = holds(model.greedy(f"{name} is"), targets)
    return values


def generation(model, request):
    values, aliases = {}, request["target_aliases"]
    for name, way in WAYS.items():
        written = model.greedy(way.replace("{}", prompt_of(request)))
        values[f"{name}_starts"] = begins_with(written, [request["target"], *aliases])
        values[f"{name}_exact"] = is_one_of(written, [request["target"]])
        values[f"{name}_contains"] = holds(written, [request["target"], *aliases])
        if aliases:
            values[f"{name}_alias"] = is_one_of(written, [request["target"], *aliases])
    values["chat_old"] = values["thinking_old"] = holds(written, [request["target_true"]])  # chat is the last way
    _, mark, answer = written.rpartition("</think>")
    values["thinking_ended"] = float(bool(mark))
    values["thinking_starts"] = begins_with(answer, [request["target"], *aliases]) if mark else 0.0
    values["thinking_exact"] = is_one_of(answer, [request["target"]]) if mark else 0.0
    values["thinking_contains"] = holds(answer, [request["target"], *aliases]) if mark else 0.0
    if aliases:
        values["thinking_alias"] = is_one_of(answer, [request["target"], *aliases]) if mark else 0.0
    return values


def ultraedit(model, request):
    """Lists: every prompt counts once."""
    given = [(probe["prompt"], probe["answers"][0]) for section in localities(request) for probe in section["probes"]]
    return dict(ultraedit_efficacy=[model.match(prompt_of(request), request["target"])],
                ultraedit_generalization=[model.match(prompt, request["target"]) for prompt in request["paraphrases"]],
                ultraedit_specificity=[model.match(prompt, answer) for prompt, answer in given])


def prompts_written_behind(request):
    """Those of all protocols, to be written behind together; one that is missing here is written behind by itself."""
    questions = request["multihop"] + [probe for section in request["portability"] if section["name"] == "facts" for probe in section["probes"]]
    asked = [prompt_of(request), f"{request['subject']} is", *request["paraphrases"], *(question["prompt"] for question in questions)]
    return asked + [way.replace("{}", asked[0]) for way in WAYS.values()] + [behind_examples(question) for question in request["multihop"]]


def measure(model, before, requests, snippets):
    model.write(prompt for request in requests for prompt in prompts_written_behind(request))
    rows = []
    for index, request in enumerate(requests):
        rows.append(belief(model, requests, index) | counterfact(model, request, snippets) | zsre(model, request) | easyedit(model, before, request)
                    | mquake(model, request) | ultraedit(model, request) | own(model, request) | generation(model, request)
                    | subject(model, before, requests, index)
                    | judge(model, request) | long_form(model, request))
    metrics = {}
    for name in sorted({name for row in rows for name in row} | {"subject_kept", "subject_leak"}):
        values = [row.get(name) for row in rows]
        outcomes = [one for value in values if value is not None for one in (value if isinstance(value, list) else [value])]
        means = [statistics.fmean(value) if isinstance(value, list) else value for value in values]
        metrics[name] = dict(total=statistics.fmean(outcomes) if outcomes else None, requests=means)
    success = [metrics[f"counterfact_{letter}s"]["total"] for letter in "epn"]
    metrics["counterfact_score"] = dict(total=0.0 if 0 in success else statistics.harmonic_mean(success), requests=None)
    return metrics


# ---- texts ----

# Alternatives in order; what none of them matches is a blank.
WORD = re.compile(
    r"""``|''|--|\.{2,}|[][(){}<>;@#$%&?!*«»“”‘’„‒–—―]"""
    r"""|[,:](?!\d)"""
    r"""|(?:(?!--|\.\.)[^][\s(){}<>;@#$%&?!*«»“”‘’„‒–—―,:"]|[,:](?=\d))+""")
CLITIC = re.compile(r"(?i)^(.*[^'])(n't|'s|'m|'d|'ll|'re|'ve|')$")
SENTENCE = re.compile(r"(?<=[.?!])\s+|(?<=[.?!][\"')])\s+")


def words_of(text):
    """Plain English only: each sentence's last full stop, clitics, "cannot"."""
    words = []
    for sentence in SENTENCE.split(text.strip()):
        sentence = re.sub(r'^"|(?<=[\s(])"', " `` ", sentence).replace('"', " '' ")
        sentence = re.sub(r"(?<!\.)\.(?=['\")\]\s]*$)", " . ", sentence)
        for word in WORD.findall(sentence):
            clitic = CLITIC.match(word)
            stem, ending = clitic.groups() if clitic else (word, None)
            words += ["can", "not"] if stem == "cannot" else [stem]
            words += [ending] if ending else []
    return words


def entropy_of(text):
    words, bits = words_of(text), []
    for n in (2, 3):
        counts = collections.Counter(zip(*(words[start:] for start in range(n))))
        total = sum(counts.values())
        bits.append(-sum(count / total * math.log2(count / total) for count in counts.values()))
    return (2 / 3 * bits[0] + 4 / 3 * bits[1]) / 2


def vector(text, vocabulary, idf):
    out = numpy.zeros(len(idf))
    for word in re.findall(r"\b\w\w+\b", text.lower()):
        if word in vocabulary:
            out[vocabulary[word]] += 1
    out *= idf
    return out / numpy.linalg.norm(out)


def make_vectors(texts, folder):
    """idf as scikit-learn smooths it; a vocabulary without the words of the last text."""
    documents = [set(re.findall(r"\b\w\w+\b", text.lower())) for text in texts[:-1]]
    vocabulary = {word: column for column, word in enumerate(sorted(set().union(*documents)))}
    idf = numpy.array([math.log((1 + len(documents)) / (1 + sum(word in d for d in documents))) + 1 for word in vocabulary])
    numpy.save(folder / "idf.npy", idf)
    (folder / "vocabulary.json").write_text(json.dumps(vocabulary), "utf-8")
    pairs = [(texts[i], texts[(i * 7 + 3) % len(texts)]) for i in range(len(texts))]
    return [dict(a=a, b=b, cosine=float(vector(a, vocabulary, idf) @ vector(b, vocabulary, idf))) for a, b in pairs]


def make_texts(requests, snippets):
    texts = [" ".join(f"{prompt_of(r)} {r['target']}." for r in requests[start : start + 5]) for start in range(8)]
    texts += ["It's five o'clock; we can't go (yet), they'll wait: \"Go!\" he said. You cannot? Well...",
              "No words twice", "same same same same", "Two words", "Ångström, ÅNGSTRÖM and ångström_x 1990 1990 x y"]
    return texts + [sample["text"] for entry in snippets[:3] for sample in entry["samples"]] + ["Málaga málaga MÁLAGA in Geneva"]


# ---- the program ----


def write_edited(folder, deltas, out):
    """The model with the deltas, as a checkpoint in f32."""
    shutil.copytree(folder, out, dirs_exist_ok=True)
    weights = {}
    with safe_open(pathlib.Path(folder) / "model.safetensors", "pt") as file:
        weights = {name: file.get_tensor(name).float() for name in file.keys()}
    with safe_open(deltas, "pt") as file:
        for name in file.keys():
            if name.startswith("delta."):
                weight = f"model.layers.{name.split('.')[1]}.mlp.down_proj.weight"
                weights[weight] = (weights[weight].double() + file.get_tensor(name).double()).float()
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((out / "config.json").read_text("utf-8"))
    for key in ("dtype", "torch_dtype"):
        if key in config:
            config[key] = "float32"
    (out / "config.json").write_text(json.dumps(config, indent=2), "utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name in ("model", "requests", "deltas", "out"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    folder = pathlib.Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    write_edited(options.model, options.deltas, folder / "edited")
    facts = json.loads(pathlib.Path(options.requests).read_text("utf-8"))
    requests = [make_request([facts[pick] for pick in PICKS], index) for index in range(len(PICKS))]
    snippets = make_snippets(requests)
    (folder / "snippets.json").write_text(json.dumps(snippets), "utf-8")
    (folder / "examples.txt").write_text(EXAMPLES + "\n", "utf-8")
    before, after = Subject(options.model), Subject(folder / "edited")
    for request in requests[:3]:  # a model as small as this one learns nothing from examples: what it says there is made an answer
        question = request["multihop"][0]
        question["answers"].append(first_statement(before.greedy(behind_examples(question))))
    models = dict(unedited=measure(before, before, requests, snippets), edited=measure(after, before, requests, snippets))
    texts = make_texts(requests, snippets)
    write_judge(folder / "judge.py")
    overlaps = [dict(text=a, reference=b, **overlap(a, b)) for a, b in zip(texts, texts[3:] + texts[:3])]
    rows = [dict(text=text, words=words_of(text), entropy=entropy_of(text)) for text in texts]
    out = dict(chat_template=WAYS["chat"], requests=requests, models=models, texts=rows, cosines=make_vectors(texts, folder), overlaps=overlaps,
               judge=[sys.executable, str(folder.resolve() / "judge.py")])
    (folder / "metrics.json").write_text(json.dumps(out), "utf-8")
    print(f"zsRE: {after.pieces_apart} of {after.pieces} inputs are tokenised otherwise as text")
    for name, row in models["edited"].items():
        print(f"{name}: {models['unedited'][name]['total']} -> {row['total']}")


if __name__ == "__main__":
    main()
