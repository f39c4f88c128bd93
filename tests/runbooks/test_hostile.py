"""Whatever the text, the answer is a list of errors, and it comes quickly."""

from __future__ import annotations

import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.runbooks import RunbookErrors, check_runbook, load_runbook, nodes
from tests.runbooks.documents import MINIMAL, as_lines, changed, described, expect_errors, marked

SECONDS = 1.0

TOO_DEEP = "lists and mappings are nested more than 32 deep"
TOO_MANY = "the document holds more than 50,000 values, aliases counted in full"
TOO_LARGE = "the document is larger than 1,048,576 bytes"
DIRECTIVES = "YAML directives (%…) are not supported (remove this line)"
SECOND = "a second document begins here (one file holds one runbook)"
NOT_A_MAPPING = "a runbook is a mapping with keys like name, data_source and phases, not a"

LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
STAIRS = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 40))
MERGES = "a0: &a0 {x: y}\n" + "".join(
    f"a{n}: &a{n} {{k: *a{n - 1}, <<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 30)
)

SLOW: dict[str, tuple[str | bytes, str | None]] = {
    "10 MB of bytes": (b"name: x\n" * 1_250_000, TOO_LARGE),
    "10 MB of text": ("name: x\n" * 1_250_000, TOO_LARGE),
    "wide characters over the limit": ("é" * 600_000, TOO_LARGE),
    "brackets": ("[" * 1_000_000, TOO_DEEP),
    "brackets, as bytes": (b"[" * 1_000_000, TOO_DEEP),
    "braces": ("{" * 1_000_000, TOO_DEEP),
    "nested lists": ("- " * 500_000, TOO_DEEP),
    "nested keys": ("? " * 500_000, TOO_DEEP),
    "nested mappings": ("".join(f"{' ' * n}a:\n" for n in range(1_000)), TOO_DEEP),
    "many values": ("[" + "a," * 500_000 + "]", TOO_MANY),
    "many steps": ("init:\n" + "  - {}\n" * 100_000, TOO_MANY),
    "billion laughs": (LAUGHS, TOO_MANY),
    "aliases that nest": (STAIRS, f"{TOO_DEEP}, aliases counted in full"),
    "merges that double": (MERGES, TOO_MANY),
    "repeated keys": ("a: b\n" * 200_000, None),
    "unknown keys": ("".join(f"descriptio{n}: x\n" for n in range(24_000)), "'data_source' is missing"),
    "directives": ("%TAG !a! b\n" * 90_000, DIRECTIVES),
    "directives after a document": ("a: b\n---\n" + "%TAG !a! b\n" * 90_000, SECOND),
    "directives after the end": ("a: b\n...\n" + "".join(f"%TAG !{n}! b\n" for n in range(60_000)), SECOND),
    "zeros": (b"\0" * 1_000_000, None),
    "line ends": ("\n" * 1_000_000, "the document is empty"),
    "comment": ("#" * 1_000_000, "the document is empty"),
    "one word": ("a" * 1_000_000, f"{NOT_A_MAPPING} text"),
    "an open quote": ("'" + "\n" * 1_000_000, None),
    "blanks": ("a: >\n" + (" " * 1_000 + "\n") * 1_000, "'data_source' is missing"),
    "a long name": (f"name: '{' ' * 500_000}x{' ' * 500_000}'", None),
    "stars": ("*" * 1_000_000, None),
    "open templates": (
        changed("        function: Do-It\n", f"        function: Do-It\n        params: {{A: '{'{{a}}' * 6_000}'}}\n"),
        "",
    ),
}


@pytest.mark.parametrize("case", SLOW)
def test_is_answered_in_time(case: str) -> None:
    text, message = SLOW[case]
    begun = time.process_time()
    report = check_runbook(text)
    assert time.process_time() - begun < SECONDS
    if message == "":
        assert report.errors == ()
    else:
        assert report.errors
        if message is not None:
            assert described(report.errors[0]) == message


REFUSED = {
    "nothing": ("§", "the document is empty"),
    "only a comment": ("§# nothing\n", "the document is empty"),
    "an empty document": ("---\n§", "the document is empty"),
    "a list": ("§- name: x\n", f"{NOT_A_MAPPING} list"),
    "a word": ("§hello\n", f"{NOT_A_MAPPING} text"),
    "a number": ("§12\n", f"{NOT_A_MAPPING} text"),
    "two documents": (f"{MINIMAL}§---\n{MINIMAL}", SECOND),
    "a second document after the end": (f"{MINIMAL}...\n# so\n§name: x\n", SECOND),
    "something after the end": ("{a: b} §{c: d}", "this is not valid YAML: the document has ended before this"),
    "a tag shorthand": ("# so\n§%TAG ! tag:x,2000:\n---\nname: x\n", DIRECTIVES),
    "a tab for indentation": (changed("    offset", "§\toffset"), "a tab stands here (use spaces)"),
    "a tab after spaces": (changed("    offset", "  §\toffset"), "a tab stands here (use spaces)"),
    "a tab before a value": (changed("  - name: go", "  -§\tname: go"), None),
    "a control character": (
        changed("people", "peo§\x07ple"),
        'the character U+0007 is not allowed here (remove it, or write it as "\\u…" in double quotes)',
    ),
    "a line separator": (changed("people", "peo§\u2028ple"), None),
    "a lone surrogate": (changed("people", "peo§\ud800ple"), None),
    "a byte order mark within": (changed("people", "peo§\ufeffple"), None),
    "a zero by escape": (changed("select * from people", '§"a\\0b"'), "the character U+0000 is not allowed in a text"),
    "a custom tag": (
        changed("select * from people", "§!!python/object:os.system x"),
        "the tag '!!python/object:os.system' is not supported (remove it)",
    ),
    "a tag on a mapping": (
        changed("data_source:\n", "data_source: §!x\n"),
        "the tag '!x' is not supported (remove it)",
    ),
    "a tag on a number": (changed("people", "people\n  max_batch_age: §!!int 3"), None),
    "an unknown anchor": (changed("name: wave", "name: §*x"), "there is no anchor &x above this alias"),
    "an anchor in itself": (
        changed("phases:", "init: &i\n  - §*i\nphases:"),
        "the alias *i is inside what it stands for",
    ),
    "a merge of a text": (changed("phases:", "<<: §x\nphases:"), "'<<' takes a mapping, or a list of mappings"),
    "an open quote": (changed("query: select", "query: §'select"), None),
    "an open bracket": (MINIMAL + "init: §[a", None),
    "a colon in a text": (changed("query: select", "query: select§: x"), None),
    "a template without quotes": (
        changed("function: Do-It", "function: §{{Action}}-It"),
        'a template must stand in quotes (write "{{Action}}")',
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_is_refused_where_it_stands(case: str) -> None:
    document, message = REFUSED[case]
    if message is not None:
        expect_errors(document, message)
        return
    text, places = marked(document)
    errors = check_runbook(text).errors
    assert (errors[0].line, errors[0].column) == places[0], as_lines(errors)


@pytest.mark.parametrize(
    ("case", "hint"),
    [
        ("a template without quotes", 'write "{{Action}}"'),
        ("a colon in a text", "a text that holds ': ' must stand in quotes"),
        ("an open quote", "the quote that is opened here is not closed"),
    ],
)
def test_bad_yaml_says_what_may_help(case: str, hint: str) -> None:
    assert check_runbook(REFUSED[case][0].replace("§", "")).errors[0].hint == hint


def test_bytes_that_are_not_utf8() -> None:
    errors = check_runbook("name: wave\ndescription: é".encode("latin-1")).errors
    assert as_lines(errors) == "line 2, column 14: the byte 0xE9 is not UTF-8 (save the document as UTF-8)"
    errors = check_runbook(MINIMAL.encode("utf-16")).errors
    assert as_lines(errors) == "line 1, column 1: the document is UTF-16 (save it as UTF-8)"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_byte_order_mark_and_line_ends_make_no_difference(end: str) -> None:
    text = "\ufeff" + MINIMAL.replace("\n", end)
    expected = load_runbook(MINIMAL)
    assert load_runbook(text) == expected
    assert load_runbook(text.encode()) == expected
    errors = check_runbook(text.replace("T-0", "T").encode()).errors
    assert [(error.line, error.column) for error in errors] == [(10, 13)]


@pytest.mark.parametrize("text", ["%YAML 1.2\n---\n" + MINIMAL, "---\n" + MINIMAL + "...\n", MINIMAL + "# end"])
def test_what_frames_a_document_is_accepted(text: str) -> None:
    assert load_runbook(text) == load_runbook(MINIMAL)


def _total(text: str | bytes) -> None:
    try:
        load_runbook(text)
    except RunbookErrors as error:
        problems = error.problems
    else:
        return
    assert problems
    assert all(problem.line > 0 and problem.column > 0 for problem in problems)


@given(st.text())
def test_any_text(text: str) -> None:
    _total(text)


@given(st.binary())
def test_any_bytes(data: bytes) -> None:
    _total(data)


@given(
    st.lists(
        st.sampled_from(
            [*"{}[]:,-?&*!|>'\"%@`#~ \n\t\\<=ax0", "- ", ": ", "{{", "}}", "<<: ", "&a ", "*a ", "!!str ", "---\n"]
        )
    )
)
def test_any_punctuation(pieces: list[str]) -> None:
    _total("".join(pieces))


@given(st.integers(0, len(MINIMAL)), st.integers(0, 12), st.text(alphabet="{}[]:,-?&*!|>'\"%#~ \n\tab1", max_size=6))
def test_any_edit_of_a_runbook(begin: int, removed: int, inserted: str) -> None:
    _total(MINIMAL[:begin] + inserted + MINIMAL[begin + removed :])


_KEYS = [
    "name",
    "data_source",
    "phases",
    "steps",
    "init",
    "rollbacks",
    "retry",
    "poll",
    "params",
    "output_params",
    "on_failure",
    "offset",
    "function",
]
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=6),
    max_leaves=30,
)


@given(st.dictionaries(st.sampled_from(_KEYS), _VALUES))
def test_any_structure(document: dict[str, object]) -> None:
    _total(yaml.safe_dump(document))


def test_without_the_compiled_parser_the_answers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "_LOADER", yaml.SafeLoader)
    assert load_runbook(MINIMAL).name == "wave"
    assert check_runbook(LAUGHS).errors[0].message == TOO_MANY
    for case in ("a custom tag", "two documents", "an anchor in itself", "a tab after spaces"):
        document, message = REFUSED[case]
        assert message is not None
        expect_errors(document, message)
