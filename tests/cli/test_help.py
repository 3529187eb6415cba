"""`lancet help` is the cheat sheet of the documents, whose commands test_docs.py runs, and whose facts are facts."""
import re

from conftest import DATA, ROOT

PAGE = (ROOT / "docs" / "cheatsheet.md").read_text()


def test_help_prints_the_cheat_sheet(lancet):
    told = lancet.run("help")
    assert told.returncode == 0 and told.stderr == ""
    kept = [line for line in PAGE.splitlines() if not line.startswith("```")]
    assert told.stdout.splitlines() == [kept[0].removeprefix("# "), *kept[1:]] and "`" + "``" not in told.stdout
    assert max(map(len, told.stdout.splitlines())) < 120 and len(re.findall(r"^lancet \w+ ", told.stdout, re.M)) >= 15


def test_its_facts_make_a_job(lancet):
    (facts,) = re.findall(r"```csv\n(.*?)```", PAGE, re.S)
    (lancet.folder / "facts.csv").write_text(facts)
    made = lancet.run("init", "--model", DATA / "demo-model", "--requests", "facts.csv")
    assert made.returncode == 0, made.stderr
    (lancet.folder / "job.yaml").write_text(made.stdout)
    looked = lancet.run("doctor", "job.yaml")
    assert looked.returncode == 0 and "1 request" in looked.stdout, looked.stdout
