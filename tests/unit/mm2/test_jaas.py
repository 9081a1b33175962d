r"""JAAS settings, against what Kafka 4.3.1's JaasContext answers (recorded by asking it)."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import ConfigError
from migrate.mm2.jaas import FLAGS, LoginModule, jaas_text, parse_jaas

# Each of `p`, but for the first two.
READ = [
    ("M Required a=b;", {"a": "b"}),
    ('M required p="x"q="y" p=z;', {"p": "z", "q": "y"}),
    ("M required p='a\"b';", 'a"b'),
    (r'M required p="a\"b\\c\n\101\u0041";', 'a"b\\c\nAu0041'),
    (r'M required p="\400\18\9";', " 0\x0189"),
    (r'M required p="\a\b\f\r\t\v";', "\x07\x08\x0c\r\t\x0b"),
    ('M required p = "x" ;', "x"),
    ("M required p=a-b.c_d$1;", "a-b.c_d$1"),
    ("M required p=_x;", "_x"),
    ("M required p=€;", "€"),
    ('M required p="x" // c\n;', "x"),
    ('M required /* c\n */ p="x";', "x"),
    ('M required p="a//b/*c*/;d";', "a//b/*c*/;d"),
    ('\'M\' "required" "p"="";', ""),
]
REFUSED = [
    "M required p=12345secret;",
    "M required p=-secret;",
    "M required p=a+secret;",
    "M required password=.secret;",
    'M required password="secret"',
    'M required password="secret;',
    'M required password="x\nsecret";',
    "M required password secret;",
    "M required password=;secret",
    "M required 1=secret;",
    "M required",
    "",
    "M secret p=x;",
    'M required p="secret"; N required;',
    "; M required secret=secret;",
    "M required p=\u0085secret;",
]


@pytest.mark.parametrize(("text", "read"), READ)
def test_what_kafka_reads_is_read_alike(text, read):
    assert parse_jaas(text, "f") == LoginModule("M", "required", read if isinstance(read, dict) else {"p": read})


@given(
    st.sampled_from(FLAGS),
    st.dictionaries(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_.]{0,8}", fullmatch=True), st.text(), max_size=4),
)
def test_quoted_values_come_back_whole(flag, options):
    def quoted(value):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
        return f'"{escaped}"'

    text = f"a.M {flag} {' '.join(f'{k}={quoted(v)}' for k, v in options.items())};"
    module = LoginModule("a.M", flag, options)
    assert parse_jaas(text, "f") == module == parse_jaas(jaas_text(module), "f")


@given(st.text())
def test_any_text_is_read_or_refused_as_a_setting_at_fault(text):
    with suppress(ConfigError):
        parse_jaas(text, "f")


@pytest.mark.parametrize("text", REFUSED)
def test_what_kafka_refuses_is_refused_without_telling_a_value(text):
    with pytest.raises(ConfigError, match=r"^sasl\.jaas\.config in a\.properties ") as caught:
        parse_jaas(text, "a.properties")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("option", "told"), [("password", r"option 2 \(password\)"), ("hunter2", r"option 2\. ")])
def test_an_error_says_which_option_by_count_and_by_name_only_where_the_name_is_well_known(option, told):
    with pytest.raises(ConfigError, match=told):
        parse_jaas(f'M required username="u" {option}=123;', "f")
