"""What the documentation says is there, is there; and what is there is in the documentation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import pytest
import yaml

from devtools.cli_reference import reference
from matoolkit.cli.main import SUBCOMMANDS, main
from matoolkit.messages import Event, WorkerJob, WorkerResult
from matoolkit.runbooks import check_runbook, definition
from matoolkit.runbooks.forms import Section
from matoolkit.simulation.coverage import TRANSITIONS
from matoolkit.simulation.faults import Fault
from matoolkit.simulation.invariants import ALWAYS, AT_REST
from matoolkit.store.bus_schema import bus_messages
from matoolkit.store.schema import metadata
from matoolkit.worker import FunctionContext, FunctionError
from matoolkit.worker.configuration import WorkerSettings
from matoolkit.worker.tenant.errors import Refused, TenantError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database

ROOT = Path(__file__).parents[2]
PAGES = {page.relative_to(ROOT).as_posix(): page.read_text() for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")]}
TARGETS = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str, text: str) -> Iterator[Block]:
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2])


BLOCKS = [block for page, text in PAGES.items() for block in blocks_of(page, text)]
YAML = [block for block in BLOCKS if block.language == "yaml"]
PYTHON = [block for block in BLOCKS if block.language == "python"]
SQL = [block for block in BLOCKS if block.language == "sql"]


def is_complete(block: Block) -> bool:
    return {"name", "data_source", "phases"} <= set(yaml.safe_load(block.text))


def completed(block: Block) -> str:
    """A part of a runbook, made whole with what is required besides."""
    step = {"name": "one", "worker_id": "worker-01", "function": "Do-One"}
    source = {"type": "sql", "connection": "SQL_WAVES", "query": "SELECT 1", "primary_key": "Key"}
    base = {
        "name": "wave",
        "data_source": {**source, "batch_time": "immediate"},
        "phases": [{"name": "only", "offset": "T-0", "steps": [step]}],
    }
    # JSON is YAML.
    return json.dumps({**base, **yaml.safe_load(block.text)})


def section(page: str, heading: str) -> str:
    found = re.search(rf"^#+ {heading}\n(.*?)(?=^#|\Z)", PAGES[page], re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no heading {heading}"
    return found[1]


def table_rows(text: str) -> list[list[str]]:
    """The rows of the first table, without its head."""
    found = re.search(r"^(?:\|.*\n)+", text, re.MULTILINE)
    assert found, "there is no table"
    lines = found[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def without_kind(sentence: str) -> str:
    return re.sub(r"\b(step|init|rollback|removal) execution", "*kind* execution", sentence)


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its full name."""
    context = click.Context(main)
    for name in SUBCOMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", each) for inner, each in command.commands.items())
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield name, command


COMMANDS = dict(commands())


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links() -> Iterator[tuple[str, str]]:
    for page, text in PAGES.items():
        yield from ((page, target) for target in re.findall(r"\]\(([^)\s]+)\)", text))


# Examples ------------------------------------------------------------------------------------------------------------


def test_there_are_examples_to_check() -> None:
    assert {block.page for block in YAML if is_complete(block)} == {"README.md"}
    assert len([block for block in YAML if not is_complete(block)]) >= 3
    assert len(SQL) >= 6


@pytest.mark.parametrize("block", [block for block in YAML if is_complete(block)], ids=lambda block: block.place)
def test_a_complete_runbook_is_valid(block: Block) -> None:
    report = check_runbook(block.text)
    assert [str(problem) for problem in (*report.strict_errors(), *report.warnings)] == []


@pytest.mark.parametrize("block", [block for block in YAML if not is_complete(block)], ids=lambda block: block.place)
def test_a_part_of_a_runbook_fits_into_one(block: Block) -> None:
    # The values of a part are checked as they are written: a number stays one, for the check to refuse.
    report = check_runbook(completed(block))
    assert [str(problem) for problem in (*report.strict_errors(), *report.warnings)] == []


@pytest.mark.parametrize(
    "text", ["phases: []", "retry: {max_retries: 3}", "rollbacks: {undo: [{name: a}]}", "onfailure: x"]
)
def test_a_part_that_does_not_fit_is_noticed(text: str) -> None:
    assert check_runbook(completed(Block("", 0, "yaml", text))).strict_errors()


@pytest.mark.parametrize("block", SQL, ids=lambda block: block.place)
def test_a_query_runs_on_the_schema(block: Block, database: Database) -> None:
    with database.reading() as tx:
        assert tx.connection.exec_driver_sql(block.text).all() == []


# What there is -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_described_with_its_options(name: str) -> None:
    described = section("docs/cli-reference.md", name)
    assert f"    matoolkit {name} " in described
    options = [each for parameter in COMMANDS[name].params for each in (*parameter.opts, *parameter.secondary_opts)]
    listed = set(re.findall(r"`(--[a-z-]+)", described))
    assert [each for each in options if each.startswith("--") and each not in listed] == []


def test_the_reference_of_commands_is_up_to_date() -> None:
    assert PAGES["docs/cli-reference.md"] == reference(), "run `make docs`"


def test_no_command_or_option_is_described_that_is_not_there() -> None:
    named = set(re.findall(r"matoolkit ((?:[a-z][a-z-]+ )?[a-z][a-z-]+)", "\n".join(PAGES.values())))
    groups = {name.partition(" ")[0] for name in COMMANDS if " " in name}
    wrong = {
        name
        for name in named
        if name not in COMMANDS
        and (name.partition(" ")[0] not in SUBCOMMANDS or name.partition(" ")[0] in groups - {name})
    }
    assert wrong == set()
    options = {each for command in COMMANDS.values() for parameter in command.params for each in parameter.opts}
    options |= {
        each for command in COMMANDS.values() for parameter in command.params for each in parameter.secondary_opts
    }
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGES["docs/commands.md"]))
    assert named <= options | {"--help", "--version"}


@pytest.mark.parametrize("target", TARGETS)
def test_every_make_target_is_mentioned(target: str) -> None:
    assert re.search(rf"(?:`|^    )make {target}\b", "\n".join(PAGES.values()), re.MULTILINE)


def sections(of: Section) -> Iterator[Section]:
    yield of
    for key in of.keys:
        inner: Any = getattr(key.form, "section", None) or getattr(getattr(key.form, "blocks", None), "section", None)
        if isinstance(inner, Section):
            yield from sections(inner)


def test_every_key_of_a_runbook_is_described() -> None:
    page = PAGES["docs/runbooks.md"]
    keys = {key.name for each in sections(definition.RUNBOOK) for key in each.keys}
    assert {"worker_id", "max_retries", "time_zone", "format", "timeout"} <= keys
    assert {key for key in keys if f"`{key}`" not in page} == set()


def test_every_message_is_described() -> None:
    described = {row[0].strip("`") for row in table_rows(section("docs/architecture.md", "Messages"))}
    events = {str(kind.__struct_config__.tag) for kind in Event.__args__}
    assert described == {*events, WorkerJob.message_type, WorkerResult.message_type}


@pytest.mark.parametrize("kind", ["batch", "member", "phase", "step"])
def test_every_change_of_state_is_described(kind: str) -> None:
    rows = table_rows(section("docs/architecture.md", kind.capitalize()))
    described = [f"{kind} {old.replace('—', '-')} -> {new}" for old, new, _ in rows]
    assert sorted(described) == sorted(change for change in TRANSITIONS if change.startswith(f"{kind} "))


def test_every_table_is_described() -> None:
    assert bus_messages.metadata is metadata
    rows = table_rows(section("docs/operations.md", "What is stored where"))
    described = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert described == {*metadata.tables, "alembic_version"}


def test_every_invariant_is_listed() -> None:
    listed = re.findall(r"^- (.*)$", section("docs/operations.md", "What doctor checks"), re.MULTILINE)
    assert listed == list(dict.fromkeys(without_kind(each.sentence) for each in (*ALWAYS, *AT_REST)))


def test_every_setting_of_the_worker_is_described() -> None:
    rows = table_rows(section("docs/operations.md", "Settings"))
    described = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(described) == sorted(setting.name for setting in WorkerSettings.declared())
    defaults = {name: row[1] for row in rows for name in re.findall(r"`(\w+)`", row[0]) if len(row[0].split(",")) == 1}
    for setting in WorkerSettings.declared():
        if isinstance(setting.default, int | float) and setting.name in defaults:
            assert defaults[setting.name] == f"{setting.default:g}"


def test_every_error_of_the_worker_is_described() -> None:
    described = section("docs/operations.md", "Errors a worker reports")
    kinds = {kind for kind in FunctionError.__subclasses__() if kind.__module__.startswith("matoolkit.worker.")}
    # What the tenant refuses is reported with the tenant's own code.
    ours = {kind.__name__ for kind in (*kinds - {TenantError}, *TenantError.__subclasses__()) if kind is not Refused}
    assert {name for name in ours if f"`{name}`" not in described} == set()


def test_everything_a_function_is_told_is_described() -> None:
    described = set(re.findall(r"`(\w+)[`(]", section("docs/custom-functions.md", "The context")))
    public = {name for name in dir(FunctionContext) if not name.startswith("_")} - {"job_logger"}
    assert public <= described


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.place)
def test_a_piece_of_python_can_be_read(block: Block) -> None:
    compile(block.text, block.place, "exec")


def test_every_fault_is_described() -> None:
    assert [row[0] for row in table_rows(section("docs/simulation.md", "Faults"))] == [str(fault) for fault in Fault]


# Links ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("page", "target"), [each for each in links() if "://" not in each[1]])
def test_links_lead_somewhere(page: str, target: str) -> None:
    path, _, anchor = target.partition("#")
    file = (ROOT / page).parent / path if path else ROOT / page
    assert file.exists()
    if anchor:
        assert anchor in anchors(file.read_text())


def test_every_page_is_reached_from_the_readme() -> None:
    reached = {target.partition("#")[0] for page, target in links() if page == "README.md"}
    assert {page for page in PAGES if page != "README.md"} <= reached
