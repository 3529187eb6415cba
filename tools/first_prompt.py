"""Prints the prompt of the first request of a requests.jsonl."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    print(json.loads(file.readline())["prompt"])
