"""Reading redacted text by raw offsets."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from base.redaction import Piece, Policy, Redactor
from runs.log_text import LogText

SECRET = "sk-abcdefghijklmnopqrst"


def text_of(*parts: tuple[int, str] | str) -> LogText:
    """Text parts are exact; `(raw, shown)` is a replacement of so many raw bytes."""
    pieces, position = [], 0
    for part in parts:
        raw, shown, exact = (len(part.encode()), part, True) if isinstance(part, str) else (*part, False)
        pieces.append(Piece(position, position + raw, shown, exact))
        position += raw
    return LogText.of(pieces, 0)


def redacted(raw: bytes, cuts: list[int]) -> LogText:
    """The text of raw bytes that arrive cut at these places."""
    redactor, whole, start = Redactor(Policy()), LogText(), 0
    for cut in [*sorted(min(cut, len(raw)) for cut in cuts), len(raw)]:
        whole = whole.followed_by(LogText.of(redactor.feed(raw[start:cut]), whole.end))
        start = cut
    return whole.followed_by(LogText.of(redactor.flush(), whole.end))


noisy = st.lists(
    st.sampled_from([SECRET, "日本🙂é", "plain ", "\n", "\0", "https://u:p@host/x ", "x" * 40])
    | st.text(max_size=6),
    max_size=12,
).map(lambda parts: "".join(parts).encode("utf-8", "surrogatepass"))
bytes_of_logs = noisy | st.binary(max_size=60)


def test_it_reads_from_an_offset() -> None:
    text = text_of("hello world")

    assert text.read(0).text == "hello world"
    assert text.read(6).text == "world"
    assert text.read(99).text == ""


def test_it_reads_a_replacement_only_from_its_beginning() -> None:
    text = text_of("key ", (30, "[REDACTED]"), " end")

    assert text.read(4).text == "[REDACTED] end"
    inside = text.read(5)
    assert (inside.text, inside.start) == (" end", 34)


def test_it_enters_a_text_between_characters() -> None:
    text = text_of("é日🙂")

    inside = text.read(1)
    assert (inside.text, inside.start, inside.end) == ("日🙂", 2, 9)


def test_a_limit_ends_between_characters_but_never_before_the_first() -> None:
    text = text_of("日本", (30, "[REDACTED]"), "x")

    assert text.read(0, 4).text == "日"
    assert text.read(0, 1).text == "日"
    assert text.read(6, 3).text == "[REDACTED]"


def test_what_is_swallowed_after_a_replacement_belongs_to_it() -> None:
    text = text_of((20, "[REDACTED]")).followed_by(LogText.of([Piece(20, 50, "", exact=False)], 20))

    assert text.read(0).end == 50
    assert text.read(30).text == ""


def test_it_keeps_the_end_between_characters_and_replacements() -> None:
    assert text_of("aé日").last(4).data.decode() == "日"
    assert text_of((20, "[REDACTED]"), "ab").last(5).data.decode() == "ab"
    assert text_of((20, "[REDACTED]"), "ab").last(5).start == 20


def test_binary_noise_is_read_by_blocks_and_still_exactly_once() -> None:
    raw = b"\xffA\0" * 4000
    whole, position, read = redacted(raw, []), 0, ""

    while position < whole.end:
        piece = whole.read(position, 700)
        read, position = read + piece.text, piece.end

    assert len(whole.spans) < 50
    assert read == whole.data.decode()
    assert whole.end == len(raw)


@settings(max_examples=150, deadline=None)
@given(bytes_of_logs, st.lists(st.integers(0, 200), max_size=5), st.integers(1, 9))
def test_reading_on_from_each_next_offset_gives_the_whole_once(
    raw: bytes, cuts: list[int], limit: int
) -> None:
    whole, position, read = redacted(raw, cuts), 0, ""

    while position < whole.end:
        piece = whole.read(position, limit)
        assert piece.end > position
        read, position = read + piece.text, piece.end

    assert read == whole.data.decode()
    assert whole.end == len(raw)


@settings(max_examples=150, deadline=None)
@given(bytes_of_logs, st.lists(st.integers(0, 200), max_size=5), st.integers(0, 200))
def test_reading_from_any_offset_gives_an_end_of_the_whole(raw: bytes, cuts: list[int], offset: int) -> None:
    whole = redacted(raw, cuts)

    read = whole.read(offset)

    assert whole.data.decode().endswith(read.text)
    assert read.start >= min(offset, whole.end)
    assert whole.read(read.start).text == read.text


@settings(max_examples=150, deadline=None)
@given(bytes_of_logs, st.integers(0, 80))
def test_the_kept_end_is_an_end_of_the_whole(raw: bytes, limit: int) -> None:
    whole = redacted(raw, [])

    tail = whole.last(limit)

    assert len(tail.data) <= limit
    assert whole.data.endswith(tail.data)
    assert tail.end == whole.end
    assert whole.read(tail.start).text == tail.data.decode()


@settings(max_examples=100, deadline=None)
@given(bytes_of_logs, st.lists(st.integers(0, 200), max_size=5))
def test_it_can_be_stored_and_read_again(raw: bytes, cuts: list[int]) -> None:
    whole = redacted(raw, cuts)

    assert LogText.stored(whole.start, whole.data, whole.stored_spans) == whole
