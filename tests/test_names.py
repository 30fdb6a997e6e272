"""What counts as a name in a text."""

from __future__ import annotations

import base64
import random
import string
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast import names as module
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.names import MOST_NAMES, Names, holds_credential

NAMES = Names()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("the loader calls parse_config and then getUserById twice", ["parse_config", "getUserById"]),
        ("see ./src/app/main.py:12:4 and C.HTTPError in it", ["src/app/main.py:12:4", "C.HTTPError"]),
        ("order 4711-a, ticket #4711 and commit 9f8e7d6c", ["4711-a", "#4711", "9f8e7d6c"]),
        ("it ended with ENOENT, ERR_MODULE_NOT_FOUND and E1101", ["ENOENT", "ERR_MODULE_NOT_FOUND", "E1101"]),
        ("open https://example.com/a/b?key=value#part now", ["https://example.com/a/b"]),
        ("it took 12.5 ms, 3 GB, 1,024 KiB, 40% and $1,200.50", ["12.5 ms", "3 GB", "1,024 KiB", "40%", "$1,200.50"]),
        ("jo.doe@example.com wrote to team@example.org", ["jo.doe@example.com", "team@example.org"]),
        ("FROM node:20-alpine with numpy==1.26.4", ["node:20-alpine", "1.26.4"]),
        ('{"userId": 17, "status_code": 404}', ["userId", "status_code"]),
        ("時間 和 上海市浦东新区世纪大道一百号", ["時間", "上海市浦东新区世", "纪大道一百号"]),
        ("データベース接続に失敗しました", ["データベース", "接続", "失敗", "しました"]),
        ("서버가 응답하지 않습니다", ["서버가", "응답하지", "않습니다"]),
    ],
)
def test_names_are_what_cannot_be_said_in_other_words(text, names):
    found = NAMES.of(text)
    assert [name for name in names if name in found] == names


@pytest.mark.parametrize(
    "text",
    [
        "Nothing of this can be said in no other words, and so it holds no names at all.",
        "well-known facts, e.g. that and this",
        "a b c 1 2 34 ... --- === /// :::",
    ],
)
def test_words_are_no_names(text):
    assert NAMES.of(text) == []


@given(st.text(max_size=3_000))
@example("\n\n\r\x85\u2028 a_b\n$ 5\n12 MB\n")
@example("password:\nabc123DEF456\n")
@example("- name: DB_PASSWORD\n  value: abc123DEF\n  path: /etc/a1")
def test_a_text_has_as_many_sets_of_names_as_lines_and_each_is_of_its_line(text):
    lines = NAMES.by_line(text)
    assert len(lines) == text.count("\n") + 1
    assert frozenset().union(*lines) == frozenset(NAMES.of(text, most=None))
    for names, line in zip(lines, text.split("\n"), strict=True):
        assert names <= frozenset(NAMES.of(line, most=None))


@given(st.text(st.sampled_from(string.ascii_letters + string.digits + "_./:@#+~-?=&% \n時あア한"), max_size=2_000))
def test_a_name_is_short_of_one_shape_and_stands_in_the_text(text):
    for name in NAMES.of(text):
        assert len(name) <= 60
        assert name in text
        assert not set(name) & set("?=&\n\"'<>()[]{}")


def test_of_one_text_so_many_names_are_kept():
    text = " ".join(f"name_{number}" for number in range(10 * MOST_NAMES))
    assert NAMES.of(text) == [f"name_{number}" for number in range(MOST_NAMES)]
    assert len(NAMES.of(text, most=None)) == 10 * MOST_NAMES


def test_of_a_long_path_the_end_is_kept():
    path = "/".join(["home", *["folder_with_a_long_name"] * 8, "module.py"])
    [name] = NAMES.of(path)
    assert path.endswith(f"/{name}")
    assert name.endswith("module.py")
    assert NAMES.of("x" * 61 + "_1") == []


# Untrusted texts

HEX, LETTERS = "0123456789abcdef", string.ascii_letters + string.digits


def random_text(alphabet: str, length: int) -> st.SearchStrategy[str]:
    # With both a digit and a letter, if it may have one: a value of one kind only is a word or a number.
    letter = next((character for character in alphabet if character.isalpha()), "1")
    return st.text(alphabet, min_size=length, max_size=length).map(lambda text: f"{letter}7{text}"[:length])


CREDENTIALS = {
    "OpenAI": ("sk-proj-{}", LETTERS, 40),
    "Anthropic": ("sk-ant-api03-{}", LETTERS, 40),
    "Stripe": ("sk_live_{}", LETTERS, 24),
    "Stripe restricted": ("rk_test_{}", LETTERS, 24),
    "GitHub": ("ghp_{}", LETTERS, 36),
    "GitHub app": ("ghs_{}", LETTERS, 36),
    "GitHub fine-grained": ("github_pat_{}", LETTERS, 60),
    "GitLab": ("glpat-{}", LETTERS, 20),
    "AWS key": ("AKIA{}", string.ascii_uppercase + string.digits, 16),
    "AWS temporary key": ("ASIA{}", string.ascii_uppercase + string.digits, 16),
    "AWS secret": ("aws_secret_access_key = {}", LETTERS, 40),
    "Google API": ("AIza{}", LETTERS, 35),
    "Google OAuth": ("ya29.{}", LETTERS, 60),
    "Slack bot": ("xoxb-{}", string.digits, 24),
    "Slack app": ("xapp-1-{}", LETTERS, 40),
    "JWT": ("eyJhbGciOiJIUzI1NiJ9.eyJ{}.abcDEF123456", LETTERS, 40),
    "Hugging Face": ("hf_{}", LETTERS, 34),
    "npm": ("npm_{}", LETTERS, 36),
    "PyPI": ("pypi-{}", LETTERS, 80),
    "SendGrid": ("SG.{}.abcDEF123456abcDEF123456", LETTERS, 22),
    "Mailgun": ("key-{}", HEX, 32),
    "Vault": ("hvs.{}", LETTERS, 24),
    "Square": ("sq0atp-{}", LETTERS, 22),
    "DigitalOcean": ("dop_v1_{}", HEX, 64),
    "Telegram": ("123456789:AA{}", LETTERS, 33),
    "Docker": ("dckr_pat_{}", LETTERS, 27),
    "Linear": ("lin_api_{}", LETTERS, 40),
    "password": ('"password": "{}"', LETTERS, 12),
    "token in a variable": ("export CI_TOKEN={}", HEX, 32),
    "header": ("Authorization: Bearer {}", LETTERS, 40),
    "basic header": ("authorization: Basic {}==", LETTERS, 24),
    "database URL": ("postgres://admin:{}@db.example.com/orders", LETTERS, 16),
    "Python assignment": ("db_passwd='{}'", LETTERS, 14),
    "YAML": ("  client_secret: {}", LETTERS, 32),
    "YAML of two lines": ("- name: DB_PASSWORD\n  value: {}", LETTERS, 12),
    "JSON in JSON": (r"{{\"password\": \"{}\"}}", LETTERS, 12),
    "XML": ("<password>{}</password>", LETTERS, 12),
    "environment in Python": ('os.environ["API_KEY"] = "{}"', LETTERS, 20),
    "annotated Python": ('password: str = "{}"', LETTERS, 12),
    "tuple": ('("password", "{}")', LETTERS, 12),
    "Markdown": ("**Password:** {}", LETTERS, 12),
    "seven characters": ("password: {}", LETTERS, 7),
    "digits": ("PASSWORD={}", string.digits, 8),
    "behind a letter that has no small one": ("İ DB_PASSWORD={}", LETTERS, 16),
    "token in a URL": ("https://{}@github.com/a/b.git", LETTERS, 40),
    "Databricks": ("dapi{}", HEX, 32),
    "Groq": ("gsk_{}", LETTERS, 52),
    "LangSmith": ("lsv2_pt_{}", HEX, 42),
    "Notion": ("secret_{}", LETTERS, 43),
    "cookie": ("Cookie: sid={}", LETTERS, 32),
    "long token": ("token: {}", LETTERS, 600),
}


@pytest.mark.parametrize("kind", CREDENTIALS)
@given(data=st.data())
def test_a_credential_is_never_listed(kind, data):
    form, alphabet, length = CREDENTIALS[kind]
    secret = data.draw(random_text(alphabet, length))
    before, after = data.draw(
        st.sampled_from([("", ""), ("see ", " there"), ('{"a_b": 1, "c": "', '"}'), ("x=(", ")")])
    )
    text = f"{before}{form.format(secret)}{after}"
    assert not [name for name in NAMES.of(text) if secret in name or name in secret]
    assert holds_credential(text)


@given(st.integers())
def test_the_lines_of_a_private_key_hold_no_names(seed):
    lines = base64.encodebytes(random.Random(seed).randbytes(600)).decode().split()
    text = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    assert sum(name in lines for name in NAMES.of(text)) < 2


@pytest.mark.parametrize(
    "text",
    [
        "the key is here",
        "token_count = 12",
        "password: required",
        "auth: none",
        "https://example.com/a:b",
        "key: PROJ-123",
    ],
)
def test_words_beside_which_passwords_may_stand_are_no_credentials(text):
    assert not holds_credential(text)


@pytest.mark.parametrize(
    "piece",
    ["a_", "password", "token:", "://", "1,", "1.", "(", "é", "あ", "あア", "eyJ", "a/", "::", "$ ", "#", "\x00", "\n"],
)
def test_a_hostile_megabyte_ends(piece):
    text = piece * (1_000_000 // len(piece))
    assert len(NAMES.by_line(text)) == text.count("\n") + 1
    assert len(NAMES.of(text)) <= MOST_NAMES


# What users say


def test_users_add_names_and_exclude_others():
    names = Names(include=[r"order \d+"], exclude=[r"runner-\d+"])
    text = "runner-17: order 12 failed\nrunner-18: order 13 is in src/pay.py\n"
    assert names.of(text) == ["order 12", "order 13", "src/pay.py"]
    assert names.by_line(text) == [{"order 12"}, {"order 13", "src/pay.py"}, set()]


def test_each_pattern_of_a_user_stands_for_itself():
    assert Names(include=[r"(?i)ord-\d+", r"(a)b", r"(\d)\1x"]).of("see ord-7, Ord-8, ab and 77x") == [
        "ord-7",
        "Ord-8",
        "ab",
        "77x",
    ]
    assert Names(include=[r"\S+"]).of("ghp_" + "a1B2" * 9) == []


def test_names_of_threads_do_not_mix(monkeypatch):
    monkeypatch.setattr(module, "_MOST_KNOWN", 10)
    text = "\n".join(f"name_{number}" for number in range(300))
    with ThreadPoolExecutor(4) as pool:
        for lines in pool.map(NAMES.by_line, [text] * 40):
            assert lines == [{f"name_{number}"} for number in range(300)]


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"include": "ORD"}, InvalidTypeError, "include must be a list of patterns, got 'ORD'"),
        ({"include": None}, InvalidTypeError, "include must be a list of patterns, got None"),
        ({"exclude": [7]}, InvalidTypeError, "exclude must hold regular expressions as text, got int"),
        ({"include": ["("]}, InvalidValueError, r"include holds '\('.* no regular expression"),
    ],
)
def test_a_pattern_that_is_none_is_refused(given, error, said):
    with pytest.raises(error, match=said):
        Names(**given)


@pytest.mark.parametrize(("given", "error"), [(["x"], InvalidTypeError), ({"includes": []}, InvalidValueError)])
def test_an_option_that_is_none_is_refused(given, error):
    with pytest.raises(error, match="names"):
        Names.from_options(given)
