"""One list says which commands several processes can run together: the parser's. Help and docs are held to it."""
import re

from conftest import ROOT

DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LAUNCHERS = r"(?:lancet launch [^\n`]*?-- |(?:torchrun|srun|mpirun) [^\n`]*?lancet )([a-z]+)"


def listed(lancet):
    help_text = lancet.run("launch", "--help").stdout
    return re.search(r"Commands that run as several processes: ([a-z, ]+)\.", help_text)[1].split(", ")


def test_docs_name_the_commands_that_run_on_ranks(lancet):
    commands = listed(lancet)
    assert {"edit", "eval", "stats"} <= set(commands)
    named = ", ".join(f"`{name}`" for name in commands[:-1]) + f" and `{commands[-1]}` run this way"
    guide = " ".join((ROOT / "docs" / "distributed.md").read_text().split())
    assert named in guide, f"docs/distributed.md: expected the sentence: {named}"
    shown = {(path.name, name) for path in DOCS for name in re.findall(LAUNCHERS, path.read_text())}
    assert len(shown) >= 3
    assert [(page, name) for page, name in shown if name not in commands] == []


def test_launch_takes_these_commands_and_no_other(lancet):
    commands = listed(lancet)
    result = lancet.run("launch", "-n", 2, "--", "generate", "--model", "x")
    expected = ", ".join(commands[:-1]) + f" or {commands[-1]}"
    assert result.returncode == 2 and f"lancet launch: error: 'generate': expected a command that several processes can share after --: {expected}" in result.stderr
    assert not (lancet.folder / "logs").exists()
