"""The estimate of a text's tokens: near the exact count, for any text, at a bounded price."""

from __future__ import annotations

import base64
import json
import os
import random
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.tokens.constants import COSTS
from holdfast.tokens.exact import exact_counter
from holdfast.tokens.text import PATTERNS, estimate_text, script_counts, signs_of, trios_of

DATA = Path(os.environ.get("HOLDFAST_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
MANIFEST = DATA / "outputs" / "manifest.json"

PROSE = (
    "The harbour lay quiet that morning, and the boats that had gone out before dawn were not yet back. "
    "Along the pier, three men mended a net and spoke of the weather, as they had done on every day before. "
)
CODE = """
def total(prices: list[float], *, discount: float = 0.0) -> float:
    \"\"\"Sum the prices, less the discount.\"\"\"
    if not 0 <= discount < 1:
        raise ValueError(f"discount must be in [0, 1), got {discount!r}")
    return sum(price * (1 - discount) for price in prices)
"""
RECORDS = json.dumps([{"id": 40_000 + n, "name": f"user-{n}", "active": n % 3 == 0, "score": n / 7} for n in range(9)])
LOG = "2026-03-01T12:04:55.120Z INFO [worker-3] GET /api/v1/items/8841 200 12ms req=9f31c2ab77e0\n"
any_text = st.text(st.characters(), max_size=3_000)


def near(share: float, expected: float) -> object:
    return pytest.approx(expected, rel=share)


@pytest.mark.parametrize(
    "text",
    [
        PROSE * 3,
        CODE * 3,
        RECORDS,
        LOG * 8,
        "城市的图书馆在周末举办了一场展览,介绍当地渔民过去的生活,吸引了许多家庭前来参观。" * 5,
        "城市的圖書館在週末舉辦了一場展覽,介紹當地漁民過去的生活,吸引了許多家庭前來參觀。" * 5,
        "В выходные городская библиотека открыла выставку о прежней жизни местных рыбаков. " * 5,
        "週末、市の図書館では昔の漁師の暮らしを紹介する展示が開かれ、多くの家族が訪れました。" * 5,
        "주말에 시립 도서관에서 옛 어부들의 생활을 소개하는 전시가 열려 많은 가족이 찾았습니다. " * 5,
        "सप्ताहांत में शहर के पुस्तकालय ने मछुआरों के पुराने जीवन पर एक प्रदर्शनी लगाई। " * 5,
        base64.b64encode(random.Random(1).randbytes(900)).decode(),
        random.Random(1).randbytes(500).hex(),
        "a,b,c\n" + "\n".join(f"{n},{n * 31 % 97}.{n % 10},{n * 7_919}" for n in range(150)),
    ],
    ids=["prose", "code", "json", "log", "zh", "zh-tw", "ru", "ja", "ko", "hi", "base64", "hex", "csv"],
)
def test_an_estimate_is_near_the_exact_count_for_every_way_to_write(text: str) -> None:
    assert estimate_text(text) == near(0.25, exact_counter()(text))


def test_an_empty_text_is_free_and_no_other_is() -> None:
    assert estimate_text("") == 0
    assert [estimate_text(text) for text in ("a", " ", "\n", "\0", "é", "\ud800", "字", ".")] == [1] * 8


@given(any_text)
def test_any_text_has_an_estimate(text: str) -> None:
    assert estimate_text(text) >= (1 if text else 0)


@given(st.text(st.sampled_from("aA0 \n-!é字\ud83d\U0001f389"), min_size=1, max_size=3_000))
def test_nothing_costs_more_tokens_than_it_has_bytes(text: str) -> None:
    assert estimate_text(text) <= 2 + 2 * len(text.encode("utf-8", "surrogatepass"))


@given(any_text, any_text)
def test_two_texts_together_cost_about_what_each_costs(first: str, second: str) -> None:
    apart = estimate_text(first) + estimate_text(second)
    if len(first) + len(second) <= 1_000:
        assert abs(estimate_text(first + second) - apart) <= 8


@pytest.mark.parametrize("text", [PROSE, CODE, RECORDS, LOG], ids=["prose", "code", "json", "log"])
@pytest.mark.parametrize("times", [2, 5, 50, 1_000])
def test_a_text_many_times_over_costs_as_many_times(text: str, times: int) -> None:
    assert estimate_text(text * times) == near(0.12, times * estimate_text(text))


@pytest.mark.parametrize("text", [PROSE, CODE, LOG], ids=["prose", "code", "log"])
def test_the_estimate_does_not_jump_where_sampling_begins(text: str) -> None:
    long = text * 40
    estimates = [estimate_text(long[:length]) for length in range(900, 1_200, 3)]
    assert all(abs(after - before) <= 0.05 * before for before, after in pairwise(estimates))


def test_a_long_text_is_judged_by_all_of_its_parts() -> None:
    half_blob = PROSE * 200 + base64.b64encode(random.Random(2).randbytes(30_000)).decode()
    assert estimate_text(half_blob) == near(0.1, exact_counter()(half_blob))


class Watched(str):
    """A text that notes how much of it is read."""

    read = 0

    def __getitem__(self, index: object) -> str:
        part = super().__getitem__(index)
        self.read += len(part)
        return part

    def encode(self, *args: object) -> bytes:
        raise AssertionError("the whole text is read")


def test_twenty_megabytes_are_read_no_more_than_one() -> None:
    small, large = Watched("x1 " * 350_000), Watched("x1 " * 7_000_000)
    assert estimate_text(large) == near(0.02, 20 * estimate_text(small))
    assert 0 < large.read <= 32_768
    assert 0 < small.read <= 32_768


@pytest.mark.parametrize("character", ["a", "A", "7", " ", "\n", "-", "字", "\0", "\ud800", "🎉"])
def test_ten_million_times_one_character_is_estimated_like_any_text(character: str) -> None:
    few, many = estimate_text(character * 10_000), estimate_text(character * 10_000_000)
    assert many == near(0.1, 1_000 * few)


def test_every_pattern_can_occur_and_every_price_belongs_to_something() -> None:
    text = "Word aB x12 7 A1 1A a1a 1234 (x) -- {[( ---\n\n   ü © ė ế ж ع ת α क ท あ 한 🎉 ✓ 的 龘 ሰ"
    scripts = {name for name, count in script_counts(text, text.encode()) if count}
    assert set(COSTS) == {*PATTERNS, *scripts}


def test_a_trio_tells_a_character_and_the_two_before_it() -> None:
    assert [signs_of(trio) for trio in trios_of(b"aB1 2")] == ["xxa", "xaA", "aA0", "a0 ", "x 0", "x0x", "xxx"]


# The data


@pytest.fixture(scope="module")
def payloads() -> list[tuple[str, int, int]]:
    if not MANIFEST.exists():
        pytest.skip(f"no payloads at {DATA}; set HOLDFAST_DATA to the folder that has them")
    count = exact_counter()
    entries = json.loads(MANIFEST.read_text(encoding="utf-8"))
    texts = [(entry["kind"], (MANIFEST.parent / entry["file"]).read_bytes().decode()) for entry in entries]
    return [(kind, estimate_text(text), count(text)) for kind, text in texts]


def test_the_mean_error_over_real_outputs_is_at_most_8_percent(payloads: list[tuple[str, int, int]]) -> None:
    assert mean(abs(estimate / exact - 1) for _, estimate, exact in payloads) <= 0.08


def test_no_kind_of_real_outputs_is_off_by_more_than_20_percent(payloads: list[tuple[str, int, int]]) -> None:
    kinds: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for kind, estimate, exact in payloads:
        kinds[kind][0] += estimate
        kinds[kind][1] += exact
    errors = {kind: estimate / exact - 1 for kind, (estimate, exact) in kinds.items()}
    assert {kind: error for kind, error in errors.items() if abs(error) > 0.2} == {}
