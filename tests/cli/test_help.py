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


def headings_of_help(lancet):
    """The commands of `lancet --help` by the heading above them."""
    shown = lancet.run("--help")
    assert shown.returncode == 0
    groups, heading = {}, None
    for line in shown.stdout.splitlines():
        if re.fullmatch(r"[A-Z][^:]*:", line):
            heading = line[:-1]
        elif heading and (command := re.match(r"  ([a-z]+)( |$)", line)):
            groups.setdefault(heading, []).append(command[1])
    return {heading: commands for heading, commands in groups.items() if heading != "Options"}


def test_commands_are_grouped_by_what_people_do(lancet):
    groups = headings_of_help(lancet)
    assert len(groups) == 5 and all(2 < len(commands) < 9 for commands in groups.values()), groups
    assert groups["Change what a model knows"][0] == "edit" and "compare" in groups["Ask, measure and compare models"]
    every = [command for commands in groups.values() for command in commands]
    assert len(every) == len(set(every)) and {"launch", "push", "schema", "log", "trace", "inspect"} <= set(every)
    # the page has the same headings, and below each the same commands
    page = (ROOT / "docs" / "commands.md").read_text()
    sections = dict(re.findall(r"^## (.*)\n((?:(?!^## ).*\n)*)", page, re.M))
    for heading, commands in groups.items():
        items = re.findall(r"^\* ((?:`[a-z]+`(?:, )?)+):", sections[heading], re.M)
        assert re.findall(r"`([a-z]+)`", " ".join(items)) == commands, heading


def test_completion_follows_the_groups(lancet):
    groups = headings_of_help(lancet)
    every = [command for commands in groups.values() for command in commands]
    words = re.search(r'^    ""\) .* words="([a-z ]+)"', lancet.run("completion", "bash").stdout, re.M)[1]
    assert words.split() == every
    zsh = lancet.run("completion", "zsh").stdout
    described = re.findall(r"commands=\(\n((?: +'[a-z]+:.*'\n)+) +\)\n +_describe -t '[a-z0-9-]+' '(.*)' commands", zsh)
    found = {heading: re.findall(r"^ +'([a-z]+):", rows, re.M) for rows, heading in described}
    assert {heading: found[heading] for heading in groups} == groups


def test_commands_of_commands_have_examples(lancet):
    for command in ("export", "import"):
        shown = lancet.run(command, "--help")
        assert shown.returncode == 0 and re.search(rf"^  lancet {command} \w+ ", shown.stdout, re.M), shown.stdout
