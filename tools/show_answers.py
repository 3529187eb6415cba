"""Prints what an edit changed, answer by answer, from the report of its output: `tools/show_answers.py out/demo-real`.

Each fact is shown with what the model wrote after its prompt before the edit and what it writes now. The last line counts the facts whose
text begins with the new answer.
"""
import argparse
import json
from pathlib import Path


def in_one_line(text):
    return " ".join(text.split())


def begins_with(text, target):
    rest = text[len(target) :]
    return text.startswith(target) and not rest[:1].isalnum()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="folder that lancet edit wrote")
    folder = parser.parse_args().output
    requests = json.loads((folder / "report.json").read_text(encoding="utf-8"))["requests"]
    count = {"before": 0, "after": 0}
    for request in requests:
        texts = {when: in_one_line(request["continuation"][when]) for when in count}
        print(f"  {request['prompt']} → {request['target']}\n    before: {texts['before']}\n    after:  {texts['after']}")
        for when, text in texts.items():
            count[when] += begins_with(text, request["target"])
    print(f"\n  {count['after']} of {len(requests)} texts begin with the new answer; before the edit {count['before']} did.")


if __name__ == "__main__":
    main()
