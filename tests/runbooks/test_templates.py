"""Templates: what they need, what they give, and what data may not do to them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.runbooks import SecretInData, Step, Template, TemplateError, UnresolvedVariables, Values, resolve_step

DATA = {
    "UserId": "u-1",
    "Display Name": "Änne Müller",
    "mail.primary": "a@b.de",
    "Größe": "XL",
    "Empty": None,
    "Blank": "",
    "Yes": True,
    "No": False,
    "Count": 3,
    "Share": 0.5,
    "Tags": ["a", "ü"],
    "Nested": {"k": [1, None]},
    "Template": "{{UserId}}",
    "_batch_id": "not this",
}
VALUES = Values(
    DATA,
    {"Output": 7, "userid": "worker's", "Count": 4},
    {"_batch_id": 12, "_batch_start_time": "2026-01-01T00:00:00Z"},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain", "plain"),
        ("{{UserId}}", "u-1"),
        ("{{ UserId }}", "u-1"),
        ("{{\tUserId }}", "u-1"),
        ("{{USERID}}", "worker's"),
        ("{{userid}}", "worker's"),
        ("{{display name}}", "Änne Müller"),
        ("{{mail.primary}}", "a@b.de"),
        ("{{GRÖSSE}}", "XL"),
        ("{{Count}}", 4),
        ("{{Output}}", 7),
        ("{{_batch_id}}", 12),
        ("{{_BATCH_ID}}", 12),
        ("{{Tags}}", ["a", "ü"]),
        ("{{Nested}}", {"k": [1, None]}),
        ("{{Yes}}", True),
        ("{{Empty}}", ""),
        ("{{Blank}}", ""),
        (" {{Count}}", " 4"),
        ("{{Count}}{{Count}}", "44"),
        ("{{Yes}} {{No}} {{Share}} {{Empty}}|", "true false 0.5 |"),
        ("x {{Tags}}", 'x ["a","ü"]'),
        ("x {{Nested}}", 'x {"k":[1,null]}'),
        ("Wave {{_batch_id}}: {{_batch_start_time}}", "Wave 12: 2026-01-01T00:00:00Z"),
        ('{"a":{"b":{{Count}}}}', '{"a":{"b":4}}'),
        ("a }} b", "a }} b"),
        ("{ {UserId} }", "{ {UserId} }"),
        ("{{Template}}", "{{UserId}}"),
        ("x{{Template}}", "x{{UserId}}"),
        ("{{secret:api-key}}", "{{secret:api-key}}"),
        ("{{ SECRET:Api_Key1 }}", "{{secret:Api_Key1}}"),
        ("Bearer {{secret:k}} for {{UserId}}", "Bearer {{secret:k}} for u-1"),
    ],
)
def test_resolve(text: str, expected: object) -> None:
    value = Template(text).resolve(VALUES)
    assert value == expected
    assert type(value) is type(expected)


def test_names_are_listed_once_in_order_and_without_secrets() -> None:
    template = Template("{{b}} {{secret:s}} {{ a }} {{b}} {{secret:s}}")
    assert template.names == ("b", "a")
    assert template.secrets == ("s", "s")
    assert not template.is_whole
    assert not template.is_secret


@pytest.mark.parametrize(
    ("text", "is_whole", "is_secret"),
    [
        ("{{a}}", True, False),
        ("{{ a }}", True, False),
        ("{{a}} ", False, False),
        ("x{{a}}", False, False),
        ("{{a}}{{a}}", False, False),
        ("{{a}}{{secret:x}}", False, False),
        ("{{secret:x}}", False, True),
        ("{{ secret:x }}", False, True),
        ("{{secret:x}}{{secret:x}}", False, False),
        ("x{{secret:x}}", False, False),
        ("", False, False),
    ],
)
def test_what_is_one_thing_and_nothing_else(text: str, is_whole: bool, is_secret: bool) -> None:
    assert (Template(text).is_whole, Template(text).is_secret) == (is_whole, is_secret)


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("{{", 0),
        ("ab{{c", 2),
        ("{{a}} {{b", 6),
        ("{{}}", 0),
        ("a{{ \t }}", 1),
        ("{{a{b}}", 0),
        ("{{{a}}}", 0),
        ("{{a\nb}}", 0),
        (f"{{{{{'x' * 257}}}}}", 0),
        ("{{secret:}}", 0),
        ("{{secret:a b}}", 0),
        ("{{secret:a/b}}", 0),
        ("{{secret :a}}", 0),
    ],
)
def test_malformed(text: str, index: int) -> None:
    with pytest.raises(TemplateError) as caught:
        Template(text)
    assert caught.value.index == index


def test_templates_are_values() -> None:
    template = Template("{{a}} b")
    assert template == Template("{{a}} b")
    assert hash(template) == hash(Template("{{a}} b"))
    assert repr(template) == "Template(text='{{a}} b')"
    assert copy.deepcopy(template).resolve(Values({"a": 1}, {}, {})) == "1 b"
    with pytest.raises(AttributeError):
        template.text = "x"  # type: ignore[misc]


def test_worker_data_beats_columns_and_special_variables_beat_both() -> None:
    values = Values({"A": "column", "_batch_id": 1}, {"A": "worker", "_batch_id": 2}, {"_batch_id": 3})
    assert Template("{{A}} {{a}} {{_batch_id}}").resolve(values) == "worker worker 3"


def test_a_null_from_a_worker_hides_the_column() -> None:
    assert Template("{{A}}").resolve(Values({"A": "column"}, {"A": None}, {})) == ""


def test_an_exact_name_beats_a_similar_one() -> None:
    assert Template("{{a}} {{A}}").resolve(Values({"A": "upper", "a": "lower"}, {}, {})) == "lower upper"
    assert Template("{{a}}").resolve(Values({"a": "column"}, {"A": "worker"}, {})) == "column"


def test_missing_variables_are_all_named() -> None:
    with pytest.raises(UnresolvedVariables) as caught:
        Template("{{z}} {{UserId}} {{y}} {{z}}").resolve(VALUES)
    assert caught.value.names == ("y", "z")
    assert str(caught.value) == "no value for: y, z"


def step(function: str = "Do-It", **params: str) -> Step:
    return Step("s", "w", Template(function), tuple((name, Template(text)) for name, text in params.items()))


def test_resolve_step() -> None:
    made = step("New-{{Kind}}", Id="{{UserId}}", Tags="{{Tags}}", Text="{{Count}}x", Key="{{secret:k}}")
    values = Values({**DATA, "Kind": "User"}, {}, {})
    assert resolve_step(made, values) == (
        "New-User",
        {"Id": "u-1", "Tags": ["a", "ü"], "Text": "3x", "Key": "{{secret:k}}"},
    )


def test_a_function_is_always_a_text() -> None:
    assert resolve_step(step("{{Count}}"), Values({"Count": 3}, {}, {})) == ("3", {})


def test_resolve_step_names_everything_that_is_missing_at_once() -> None:
    made = step("{{Kind}}-{{UserId}}", A="{{b}}", B="{{UserId}} {{a}}", C="{{Kind}}{{c}}{{d}}")
    with pytest.raises(UnresolvedVariables) as caught:
        resolve_step(made, VALUES)
    assert caught.value.names == ("Kind", "a", "b", "c", "d")


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("{{A}}", {"A": "{{secret:password}}"}),
        ("{{A}}", {"A": "x {{ Secret : password }}"}),
        ("{{A}}", {"A": ["x", "{{secret:password}}"]}),
        ("{{A}}", {"A": {"k": ["{{secret:password}}"]}}),
        ("x {{A}}", {"A": "{{secret:password}}"}),
        ("{{A}}{{B}}", {"A": "{{sec", "B": "ret:password}}"}),
        ("{{{A}}", {}),
        ("{ {{A}} {{secret:mine}}", {"A": "{{secret:password}}"}),
    ],
)
def test_data_cannot_name_a_secret(text: str, data: dict[str, Any]) -> None:
    if not data:
        with pytest.raises(TemplateError):
            Template(text)
        return
    with pytest.raises(SecretInData) as caught:
        Template(text).resolve(Values(data, {}, {}))
    assert "password" not in str(caught.value)
    assert caught.value.names == tuple(data)


def test_a_reference_beside_harmless_data_is_kept() -> None:
    assert Template("{{A}}{{secret:k}}").resolve(Values({"A": "{"}, {}, {})) == "{{{secret:k}}"


_NAMES = st.text(
    alphabet=st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="{}"), min_size=1, max_size=10
)


@given(
    st.lists(st.tuples(st.text(alphabet="ab }\n", max_size=5), _NAMES.map(str.strip).filter(bool))),
    st.text(alphabet="xy "),
)
def test_what_is_put_together_is_taken_apart(pieces: list[tuple[str, str]], rest: str) -> None:
    pieces = [(text, name) for text, name in pieces if not name.casefold().startswith("secret")]
    template = Template("".join(f"{text}{{{{ {name} }}}}" for text, name in pieces) + rest)
    assert template.names == tuple(dict.fromkeys(name for _, name in pieces))
    values = Values({name: f"<{name}>" for _, name in pieces}, {}, {})
    assert template.resolve(values) == "".join(f"{text}<{name}>" for text, name in pieces) + rest


@given(st.text(alphabet="{}secrt: ax", max_size=30))
def test_any_text_compiles_or_is_malformed(text: str) -> None:
    try:
        template = Template(text)
    except TemplateError as error:
        assert text[error.index : error.index + 2] == "{{"  # noqa: PT017 - not every text is malformed
    else:
        assert template.names or template.secrets or template.resolve(Values({}, {}, {})) == text


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet='abü"'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet="ab"), inner),
    max_leaves=5,
)


@given(_JSON)
def test_values_within_a_text_are_json(value: object) -> None:
    text = Template("[{{A}}]").resolve(Values({"A": value}, {}, {}))
    assert isinstance(text, str)
    if value is None or isinstance(value, str):
        assert text == f"[{value or ''}]"
    else:
        assert json.loads(text) == [value]
