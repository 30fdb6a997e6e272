"""Recorded conversations are read from whatever file they are in, and what cannot be read is told in one line."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import as_anthropic, as_converse, data_folder, needs_recorded_runs, recorded_runs

from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.recordings import FORMATS, Recording, Unreadable, read_recordings, size_of

CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "a"}'}}
CHAT = [
    {"role": "user", "content": "Look at a."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "There is nothing."},
    {"role": "assistant", "content": "Nothing there."},
    {"role": "user", "content": "Thanks."},
]
FORMS = {"openai": CHAT, "anthropic": as_anthropic(CHAT), "converse": as_converse(CHAT)}
SHORT = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello!"}]


def written(path: Path, content: str | bytes, *, packed: bool = False) -> Path:
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if packed else raw)
    return path


def lines(*values: Any) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def read(*paths: Path, **options: Any) -> list[Recording | Unreadable]:
    return list(read_recordings(paths, **options))


def only(path: Path, **options: Any) -> Recording:
    (found,) = read(path, **options)
    assert isinstance(found, Recording), found
    return found


def told(path: Path | str, **options: Any) -> str:
    (found,) = read(path, **options)
    assert isinstance(found, Unreadable), found
    return str(found).removeprefix(str(path))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run"


WAYS = {
    "an object": lambda messages: json.dumps({"messages": messages}),
    "an object over many lines": lambda messages: json.dumps({"messages": messages}, indent=2),
    "a list": json.dumps,
    "a list over many lines": lambda messages: json.dumps(messages, indent="\t"),
    "a list with a line for each": lambda messages: "[\n" + ",\n".join(map(json.dumps, messages)) + "\n]\n",
    "a list of one object": lambda messages: json.dumps([{"messages": messages}]),
    "one message a line": lambda messages: lines(*messages),
    "a logged request": lambda messages: json.dumps({"at": 1, "request": {"messages": messages}}),
    "a batch": lambda messages: json.dumps({"custom_id": "1", "body": {"messages": messages}}),
    "a batch of Anthropic": lambda messages: json.dumps({"custom_id": "1", "params": {"messages": messages}}),
    "a request in a request": lambda messages: json.dumps({"request": {"body": {"messages": messages}}}),
    "Windows' lines": lambda messages: lines(*messages).replace("\n", "\r\n"),
    "a byte order mark": lambda messages: "\ufeff" + json.dumps(messages),
    "blank lines": lambda messages: "\n\n" + lines(*messages).replace("\n", "\n \n"),
    "blank lines in an object": lambda messages: json.dumps({"messages": messages}, indent=1).replace("\n", "\n\n"),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", WAYS)
def test_a_conversation_is_read_as_it_was_written(way, form, packed, file):
    found = only(written(file, WAYS[way](FORMS[form]), packed=packed))
    assert found == Recording(str(file), form, form, tuple(FORMS[form]))


@pytest.mark.parametrize("form", FORMS)
def test_a_file_of_many_is_read_line_by_line(form, file):
    written(file, lines({"messages": FORMS[form]}, {"id": "second", "messages": FORMS[form]}, FORMS[form]))
    found = read(file)
    assert [recording.name for recording in found] == [f"{file}:1", f"{file}:2:second", f"{file}:3"]
    assert all(recording.messages == tuple(FORMS[form]) for recording in found)


def test_a_list_of_conversations_is_read_one_by_one(file):
    written(file, json.dumps([{"messages": SHORT}, {"messages": []}, {"name": "b\n", "messages": SHORT}, 7], indent=1))
    assert [getattr(found, "name", str(found)) for found in read(file)] == [
        f"{file}[1]",
        f"{file}: item 2: no answer of a model in it",
        f"{file}[3]:b\\n",
        f"{file}: item 4: there are no messages in it",
    ]


def test_a_large_file_is_not_read_before_it_is_asked_for(file):
    written(file, lines(*({"messages": SHORT, "filling": "x" * 50_000} for _ in range(200))))
    counts: list[int] = []
    recordings = read_recordings([file], on_read=counts.append)
    next(recordings)
    assert 0 < sum(counts) <= 1_000_000 < file.stat().st_size
    assert len(list(recordings)) == 199
    assert sum(counts) == file.stat().st_size == size_of([file])


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[" * 10_000, lines({"messages": SHORT}).encode(), gzip.compress(b"x" * 100_000)[:60], b"{}\n" * 9],
)
def test_in_the_end_all_bytes_were_told_of(content, file):
    counts: list[int] = []
    read(written(file, content), on_read=counts.append)
    assert sum(counts) == size_of([file]) == len(content)


def test_what_the_caller_raises_is_the_callers(file):
    def refuse(count: int) -> None:
        raise BrokenPipeError(count)

    written(file, lines({"messages": SHORT}))
    with pytest.raises(BrokenPipeError):
        read(file, on_read=refuse)


# What stands beside the messages.


def test_system_messages_at_the_beginning_are_the_system_prompt(file):
    opening = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "B"}]},
    ]
    later = {"role": "system", "content": "Be briefer."}
    found = only(written(file, json.dumps({"system": "First.", "messages": [*opening, *SHORT, later]})))
    assert found.system_prompt == "First.\n\nBe brief.\n\nB"
    assert found.messages == (*SHORT, later)


def test_one_system_prompt_stays_as_it_is(file):
    blocks = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    assert only(written(file, json.dumps({"system": blocks, "messages": SHORT}))).system_prompt == blocks


def test_prompts_that_are_more_than_text_are_joined_as_blocks(file):
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    messages = [{"role": "system", "content": [image]}, *SHORT]
    found = only(written(file, json.dumps({"system_prompt": "Look.", "messages": messages})))
    assert found.system_prompt == [{"type": "text", "text": "Look."}, image]


@pytest.mark.parametrize(
    ("beside", "dialect"),
    [
        ({"tools": [{"name": "look", "input_schema": {}}]}, "anthropic"),
        ({"tools": [{"type": "function", "function": {"name": "look"}}]}, "openai"),
        ({"toolConfig": {"tools": [{"toolSpec": {"name": "look"}}]}}, "converse"),
        ({"tool_specs": [{"name": "look", "inputSchema": {}}]}, "openai"),
    ],
)
def test_tools_are_kept_and_tell_plain_texts_apart(beside, dialect, file):
    found = only(written(file, json.dumps({"messages": SHORT, "model": "m-1", **beside})))
    assert (found.dialect, found.model, len(found.tool_specs)) == (dialect, "m-1", 1)


@pytest.mark.parametrize(
    "response",
    [
        {"choices": [{"message": SHORT[1]}]},
        {"body": {"choices": [{"message": {**SHORT[1], "annotations": []}}]}},
        {"role": "assistant", "content": "Hello!", "usage": {}},
        {"output": {"message": SHORT[1]}},
    ],
)
def test_a_logged_request_has_its_answer_at_the_end(response, file):
    written(file, json.dumps({"request": {"messages": SHORT[:1]}, "response": response}))
    assert only(file).messages == tuple(SHORT)


def test_keys_of_no_provider_are_left_out(file):
    noted = [{**message, "timestamp": 1, "harness_view": "x"} for message in CHAT]
    assert only(written(file, json.dumps(noted))).messages == tuple(CHAT)


def test_arguments_that_are_an_object_become_text(file):
    call = {**CALL, "function": {"name": "look", "arguments": {"at": "a"}}}
    chat = [CHAT[0], {**CHAT[1], "tool_calls": [call]}, *CHAT[2:]]
    assert only(written(file, json.dumps(chat))).messages == tuple(CHAT)


def test_old_function_calls_pass_as_they_are(file):
    chat = [
        SHORT[0],
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
    ]
    found = only(written(file, json.dumps(chat)))
    assert (found.dialect, found.messages) == ("openai", tuple(chat))


def test_bytes_that_strands_wrote_are_bytes_again(file):
    image = {"format": "png", "source": {"bytes": {"__bytes_encoded__": True, "data": "iVBO"}}}
    chat = [{"role": "user", "content": [{"image": image}]}, {"role": "assistant", "content": [{"text": "A picture."}]}]
    found = only(written(file, json.dumps(chat)))
    assert found.messages[0]["content"][0]["image"]["source"]["bytes"] == b"\x89PN"
    image["source"]["bytes"]["data"] = "?"
    assert told(written(file, json.dumps(chat))) == ": bytes in it are not base64"


# What cannot be read.


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", ": there is nothing in it"),
        (b"\xef\xbb\xbf\n \n", ": there is nothing in it"),
        (b"not json", ":1: not JSON: expecting value at column 1"),
        (b'{\n "a": 1,\n "b" 2\n}', ":3: not JSON: expecting ':' delimiter at column 6"),
        (b'{"messages": [NaN]}', ":1: not JSON: NaN is no number there"),
        (b'{"messages": [' + b"1" * 5_000 + b"]}", ":1: a number in it has too many digits"),
        (b'{"a": "\xff"}', ":1: not UTF-8: byte 8 is 0xff"),
        ("{}".encode("utf-16"), ": it is UTF-16, not UTF-8"),
        (b"\x28\xb5\x2f\xfd....", ": it is packed by zstd, and only gzip is unpacked"),
        (b"\x1f\x8bthis is no gzip", ":1: the gzip file is damaged here: Unknown compression method"),
        (b"[" * 100_000, ":1: nested too deeply"),
        (b"[" * 300 + b"]" * 300, ":1: nested more than 200 levels deep"),
        (b"{}", f": no conversation in a form that is known; --format takes {', '.join(FORMATS)}"),
        (
            b"1\n2\n3\n",
            f":1: no conversation in a form that is known, and 2 more like it; --format takes {', '.join(FORMATS)}",
        ),
        (b'{"messages": []}', ": no answer of a model in it"),
        (b'[{"role": "user", "content": "a"}]', ": no answer of a model in it"),
        (b'[{"role": "assistant", "content": "a"}]', ": nothing but answers of a model in it"),
        (b'[{"role": "user", "content": "a"}, 5]', ": message 2 is no object"),
        (b'[{"role": "user", "content": "a"}, {}]', ": message 2 has no role"),
    ],
)
def test_what_cannot_be_read_is_told_with_the_line_and_the_reason(content, reason, file):
    assert told(written(file, content)) == reason


@pytest.mark.parametrize("form", FORMS)
def test_a_result_of_no_call_is_refused_in_a_conversation_that_stands_whole(form, file):
    chat = [*FORMS[form][:1], *FORMS[form][2:]]
    chat.insert(0, {"role": "system", "content": "Be brief."})
    assert told(written(file, json.dumps(chat))) == ": message 3 is the result of a call 'call_1' that is not before it"
    assert told(written(file, json.dumps(chat)), format=form).startswith(": message 3")


@pytest.mark.parametrize("form", FORMS)
def test_a_call_at_the_end_is_a_run_that_broke_off(form, file):
    assert only(written(file, json.dumps(FORMS[form][:2]))).messages == tuple(FORMS[form][:2])


def test_a_result_that_names_no_call_is_told(file):
    chat = [*SHORT, {"role": "tool", "content": "1"}]
    assert told(written(file, json.dumps(chat))) == ": message 3 is the result of no call: it names none"


def test_broken_lines_cost_themselves_only(file):
    good = lines({"messages": SHORT})
    written(file, good + '{"messages": [\n' + good + "?\n" * 1_000 + '{"x": 1}\n' + good)
    found = read(file)
    assert [each.name for each in found if isinstance(each, Recording)] == [f"{file}:{n}" for n in (1, 3, 1005)]
    assert [str(each).removeprefix(str(file)) for each in found if isinstance(each, Unreadable)] == [
        ":2: not JSON: expecting value at column 15",
        ":4: not JSON: expecting value at column 1; nor can the next 999 be read",
        ":1004: there are no messages in it",
    ]


@pytest.mark.parametrize("broken", ['{"messages": [', '{"messages": [{"role": "us', "{", "?"])
def test_a_broken_first_line_costs_itself_only(broken, file):
    written(file, f"{broken}\n" + lines({"messages": SHORT}, {"messages": SHORT}))
    found = read(file)
    assert [type(each) for each in found] == [Unreadable, Recording, Recording]
    assert str(found[0]).startswith(f"{file}:1: not JSON")


def test_of_a_file_that_is_cut_the_lines_before_are_read(file):
    packed = gzip.compress(lines(*({"messages": SHORT, "x": os.urandom(2_000).hex()} for _ in range(50))).encode())
    found = read(written(file, packed[: len(packed) // 2]))
    assert 20 <= sum(isinstance(each, Recording) for each in found) == len(found) - 1
    assert str(found[-1]) == f"{file}:{len(found)}: the gzip file is cut off here"


@pytest.mark.parametrize(
    ("packed", "what"), [(b"x" * (1 << 24), "line"), ((b"0" * 1_000 + b",\n") * (1 << 14), "value")]
)
def test_what_unpacks_to_more_than_memory_holds_is_refused(packed, what, file):
    whole = gzip.compress(lines({"messages": SHORT}).encode()) if what == "line" else gzip.compress(b"[\n")
    found = read(written(file, whole + gzip.compress(packed) * 64))
    assert len(found) == (2 if what == "line" else 1)
    assert str(found[-1]).endswith(
        f": one {what} of more than 128 MiB, and the rest is not read; write one conversation a line"
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_broken_line_of_a_log_costs_itself_and_the_result_of_its_call(form, file):
    rows = lines(*FORMS[form]).splitlines()
    rows[1] = rows[1][:-5]
    found = read(written(file, "\n".join(rows)))
    assert [getattr(each, "line", None) for each in found] == [2, 3, None]
    assert str(found[1]) == f"{file}:3: a result without the call before it is left out"
    assert found[2].messages == (FORMS[form][0], *FORMS[form][3:])


def test_many_results_of_no_call_are_told_together(file):
    orphans = [{"role": "tool", "tool_call_id": str(number), "content": "1"} for number in range(3_000)]
    notice, found = read(written(file, lines(*SHORT, *orphans)))
    assert str(notice) == f"{file}:3: a result without the call before it is left out, and 2,999 after it"
    assert found.messages == tuple(SHORT)


def openai_call(arguments: str, **more: Any) -> Any:
    call = {"id": "t-1", "type": "function", "function": {"name": "look", "arguments": arguments}, **more}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def grown(*counts: int, tag: str = "") -> list[Any]:
    """A conversation at several moments, each of which ends with an answer."""
    said = [
        {"role": role, "content": f"{tag}{number}"} for number in range(max(counts)) for role in ("user", "assistant")
    ]
    return [said[: 2 * count] for count in counts]


def test_of_a_log_of_requests_each_conversation_is_read_once_and_whole(file):
    one, other = grown(1, 2, 3, tag="a"), grown(1, 2, tag="b")
    requests = [{"messages": said} for said in (one[0], other[0], one[1], one[2], other[1])]
    found = read(written(file, lines(*requests)))
    assert [list(each.messages) for each in found] == [one[2], other[1]]


def test_an_answer_that_a_program_wrote_down_in_other_words_goes_on_all_the_same(file):
    [first, second] = grown(1, 2)
    answer = {**first[-1], "refusal": None, "annotations": []}
    logged = {"request": {"messages": first[:-1]}, "response": {"choices": [{"message": answer}]}}
    found = read(written(file, lines(logged, {"messages": second})))
    assert [len(each.messages) for each in found] == [4]


def test_conversations_that_only_begin_alike_are_two(file):
    [said] = grown(2)
    other = [*said[:-1], {"role": "assistant", "content": "other"}]
    assert len(read(written(file, lines({"messages": said}, {"messages": other})))) == 2


def test_a_request_that_was_sent_again_is_one(file):
    first, second = grown(1, 2)
    found = read(written(file, lines(*({"messages": said} for said in (first, first, second)))))
    assert [list(each.messages) for each in found] == [second]


def test_a_conversation_goes_on_however_many_others_come_between(file):
    agent = grown(*range(1, 41))
    others = [grown(1, tag=f"title {number} ")[0] for number in range(40)]
    asked = [{"messages": said} for pair in zip(agent, others, strict=True) for said in pair]
    found = read(written(file, lines(*asked)))
    assert len(found) == 41
    assert max(len(each.messages) for each in found) == 80


def marked(text: str, **more: Any) -> Any:
    return {"role": "user", "content": [{"type": "text", "text": text, **more}]}


TOOL_USE = {"type": "tool_use", "id": "t-1", "name": "look", "input": {"page": 1}}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t-1", "content": "found"}]}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
GROWING = {
    "with a mark of the cache that moves": (
        [marked("a", cache_control={"type": "ephemeral"}), {"role": "assistant", "content": "b"}],
        [marked("a"), {"role": "assistant", "content": "b"}, marked("c", cache_control={"type": "ephemeral"})],
    ),
    "with an answer sent back as text": (
        [marked("a"), {"role": "assistant", "content": [{"type": "text", "text": "b"}]}],
        [marked("a"), {"role": "assistant", "content": "b"}, marked("c")],
    ),
    "without its reasoning": (
        [marked("a"), {"role": "assistant", "content": [THOUGHT, TOOL_USE]}],
        [marked("a"), {"role": "assistant", "content": [TOOL_USE]}, RESULT],
    ),
    "with calls written otherwise": (
        [{"role": "user", "content": "a"}, openai_call('{"page": 1}', index=0)],
        [{"role": "user", "content": "a"}, openai_call('{"page":1}'), {"role": "user", "content": "c"}],
    ),
}


@pytest.mark.parametrize("pair", GROWING.values(), ids=GROWING)
def test_a_conversation_goes_on_however_a_program_sends_it_back(pair, file):
    [found] = read(written(file, lines(*({"messages": said} for said in pair))))
    assert len(found.messages) == 3


ANSWERS = {
    "beside the messages": {"messages": SHORT[:1], "response": {"choices": [{"message": SHORT[1]}]}},
    "without a role": {"messages": SHORT[:1], "response": {"choices": [{"message": {"content": "Hello!"}}]}},
    "as the output": {"input": {"messages": SHORT[:1]}, "output": SHORT[1]},
    "in an invocation log": {
        "schemaType": "ModelInvocationLog",
        "input": {"inputBodyJson": {"messages": [{"role": "user", "content": [{"text": "Hello."}]}]}},
        "output": {"outputBodyJson": {"output": {"message": {"role": "assistant", "content": [{"text": "Hello!"}]}}}},
    },
}


def test_an_answer_that_stands_among_the_messages_already_is_not_doubled(file):
    logged = {"messages": SHORT, "response": {"choices": [{"message": {"content": SHORT[1]["content"]}}]}}
    [found] = read(written(file, json.dumps(logged)))
    assert list(found.messages) == SHORT


@pytest.mark.parametrize("logged", ANSWERS.values(), ids=ANSWERS)
def test_the_answer_that_was_logged_with_a_request_is_read(logged, file):
    [found] = read(written(file, json.dumps(logged)))
    assert [message["role"] for message in found.messages] == ["user", "assistant"]


def test_what_is_given_twice_is_read_once(file):
    written(file, json.dumps(SHORT))
    link = file.with_name("link")
    link.symlink_to(file)
    paths = [file, file.parent / "." / file.name, link]
    assert len(list(read_recordings(paths))) == 1
    assert size_of(paths) == file.stat().st_size


def test_a_file_that_is_not_there_is_told(tmp_path):
    assert told(tmp_path / "gone") == ": it cannot be read: no such file or directory"
    assert told("a\0b") == "a\\x00b: it cannot be read: no file can have this name"
    assert size_of([tmp_path / "gone", "a\0b"]) == 0


@pytest.mark.parametrize("format", [*FORMATS])
@pytest.mark.parametrize("form", FORMS)
def test_a_format_that_is_given_is_read_or_said_not_to_be(form, format, file):
    found = read(written(file, json.dumps(FORMS[form])), format=format)
    if form == format:
        assert [each.format for each in found] == [format]
    elif format in FORMS:
        assert str(found[0]) == f"{file}: its messages are of {form}, not of {format}"
    else:
        assert str(found[0]) == f"{file}: it holds conversations of a provider, which --format {format} does not read"


def test_wrong_arguments_are_refused_at_once(file):
    with pytest.raises(InvalidValueError, match="format must be one of openai, anthropic, converse, strands, claude"):
        read_recordings([file], format="gemini")
    with pytest.raises(InvalidTypeError, match=r"got one str; write \[path\]"):
        read_recordings(str(file))
    with pytest.raises(InvalidTypeError, match="on_read must be callable"):
        read_recordings([file], on_read=5)


# Folders.


def test_a_folder_is_read_in_order_with_all_below(tmp_path):
    for name in ("b.jsonl", "a.json", "C.NDJSON", "d/e.json.gz", "d/d/f.jsonl.gz", "notes.txt", "d/g.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        written(path, json.dumps(SHORT), packed=name.endswith("gz"))
    found = [os.path.relpath(each.name, tmp_path) for each in read(tmp_path)]
    assert found == ["C.NDJSON", "a.json", "b.jsonl", "d/e.json.gz", "d/d/f.jsonl.gz"]
    assert size_of([tmp_path]) == sum((tmp_path / name).stat().st_size for name in found)


def test_links_in_a_folder_are_not_followed(tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    folder.mkdir()
    written(outside / "a.json", json.dumps(SHORT))
    (folder / "b.json").symlink_to(outside / "a.json")
    (folder / "c").symlink_to(outside)
    (folder / "d").symlink_to(folder)
    assert told(folder) == ": no .json, .jsonl, .ndjson or their .gz in it"
    assert only(folder / "b.json").messages == tuple(SHORT)
    assert only(folder / "c").name == str(folder / "c" / "a.json")


def test_what_stands_beside_conversations_is_passed_over(tmp_path):
    for name in ("sessions-index.json", "agent-1.meta.json", "agent-acompact-1.jsonl", "session.json"):
        written(tmp_path / name, "{}")
    written(tmp_path / "z.json", json.dumps(SHORT))
    assert only(tmp_path).name == str(tmp_path / "z.json")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_is_closed_is_told(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o000)
    assert told(tmp_path).endswith("/closed: it cannot be read: permission denied")


def test_a_pipe_is_read_too(tmp_path):
    reading, writing = os.pipe()
    os.write(writing, gzip.compress(lines({"messages": SHORT}).encode()))
    os.close(writing)
    path = f"/dev/fd/{reading}"
    if not os.path.exists(path):
        pytest.skip("no names for open files here")
    try:
        assert size_of([path]) == 0
        assert only(Path(path)).messages == tuple(SHORT)
    finally:
        os.close(reading)


# Whatever is in a file.

WORDS = """role content messages type uuid parentUuid sessionId message message_id id data request body system tools
toolConfig tool_calls tool_call_id toolResult toolUse name schema_version response choices redact_message text model
isSidechain agentId"""
NAMES = st.sampled_from(WORDS.split())
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from([CALL, *CHAT])
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=5),
    max_leaves=15,
)
VALID = [
    *(way(messages).encode() for messages in FORMS.values() for way in WAYS.values()),
    gzip.compress(lines({"messages": SHORT}, {"messages": CHAT}).encode()),
]


def check_fair(file: Path, **options: Any) -> None:
    for found in read(file, **options):
        assert isinstance(found, (Recording, Unreadable))
        if isinstance(found, Unreadable):
            assert str(found).isprintable()
            assert 0 < len(found.reason) <= 200
        else:
            assert found.format in FORMATS
            assert found.dialect in FORMS
            assert all(isinstance(message, dict) for message in found.messages)


fuzzed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@fuzzed
@given(content=st.binary(max_size=300), format=st.none() | st.sampled_from(FORMATS))
def test_random_bytes_never_raise(content, format, file):
    check_fair(written(file, content), format=format)
    check_fair(written(file, content, packed=True), format=format)


@fuzzed
@given(values=st.lists(JSON, max_size=4), format=st.none() | st.sampled_from(FORMATS), indent=st.none() | st.just(1))
def test_random_json_never_raises(values, format, indent, file):
    check_fair(written(file, "\n".join(json.dumps(value, indent=indent) for value in values)), format=format)
    check_fair(written(file, json.dumps(values, indent=indent)), format=format)


@fuzzed
@given(content=st.sampled_from(VALID), data=st.data())
def test_what_is_cut_or_garbled_never_raises(content, data, file):
    at = data.draw(st.integers(0, len(content)))
    check_fair(written(file, content[:at]))
    check_fair(written(file, content[:at] + data.draw(st.binary(max_size=3)) + content[at + 1 :]))


@fuzzed
@given(
    chat=st.lists(st.sampled_from(SHORT), min_size=1, max_size=8),
    way=st.sampled_from(sorted(WAYS)),
    packed=st.booleans(),
)
def test_plain_talk_comes_back_from_any_form(chat, way, packed, file):
    found = only(written(file, WAYS[way]([*SHORT, *chat]), packed=packed))
    assert found.messages == (*SHORT, *chat)


# Real runs.


@needs_recorded_runs
def test_all_recorded_runs_are_read():
    paths = [data_folder() / f"{name}.jsonl.gz" for name in ("swe", "tau", "web")]
    runs = {f"{path}": list(recorded_runs(path.name.partition(".")[0])) for path in paths}
    found = iter(read_recordings(paths))
    for path in paths:
        for number, run in enumerate(runs[str(path)], 1):
            recording = next(found)
            assert recording.name.startswith(f"{path}:{number}:{run.id[:50]}")
            assert (recording.dialect, recording.system_prompt or None) == ("openai", run.system or None)
            assert [m["content"] for m in recording.messages] == [m["content"] for m in run.messages]
    assert next(found, None) is None


@needs_recorded_runs
def test_recorded_runs_are_the_same_in_every_form(tmp_path):
    for run in list(recorded_runs("tau"))[:10]:
        for form, messages in (("anthropic", as_anthropic(run.messages)), ("converse", as_converse(run.messages))):
            found = only(written(tmp_path / "run.jsonl.gz", lines(*messages), packed=True))
            assert (found.dialect, found.messages) == (form, tuple(messages))
