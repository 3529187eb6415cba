"""The names of data/entities.txt: 5,000 subjects of CounterFact (MIT licence, github.com/kmeng01/rome) in a random order.

    tools/entity_names.py counterfact.json [MORE.json] > data/entities.txt

The arguments are files of CounterFact records, as published (`requested_rewrite`) or flat (`subject`).
No name occurs in data/requests/demo.json, neither as a subject nor in a prompt about other subjects: measurements with these facts then ask
about subjects that no statistics have seen.
"""
import json
import random
import sys
from pathlib import Path

HOW_MANY, SHORTEST, LONGEST = 5_000, 3, 60
DEMO = Path(__file__).resolve().parent.parent / "data" / "requests" / "demo.json"


def subject_of(record):
    return record.get("requested_rewrite", record)["subject"]


def main(paths):
    demo = json.dumps(json.loads(DEMO.read_text()), ensure_ascii=False).lower()
    names = {subject_of(record).strip() for path in paths for record in json.loads(Path(path).read_text())}
    fitting = (name for name in names if SHORTEST <= len(name) <= LONGEST and name.isprintable())
    unseen = sorted(name for name in fitting if json.dumps(name, ensure_ascii=False)[1:-1].lower() not in demo)
    random.Random(0).shuffle(unseen)
    if len(unseen) < HOW_MANY:
        sys.exit(f"expected at least {HOW_MANY} names that data/requests/demo.json does not have, got {len(unseen)}: give more files")
    print("\n".join(unseen[:HOW_MANY]))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
