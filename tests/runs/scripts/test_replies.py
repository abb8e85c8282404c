"""Answers of boxes, well-formed, cut, garbled and hostile."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.replies import (
    DispatchReply,
    Exit,
    LogPiece,
    PollReply,
    ReplyInvalid,
    parse_dispatch,
    parse_kill,
    parse_poll,
    parse_probe,
)

HELLO = base64.b64encode(b"hello").decode()
POLL = f"OA_PRESENT=1\nOA_ALIVE=1\nOA_OFFSET=7\nOA_SIZE=12\nOA_LENGTH=5\nOA_DATA={HELLO}\n"


class TestDispatch:
    @pytest.mark.parametrize(
        "answer",
        [
            "4242\n",
            "noise\n\n4242\r\n\n",
            {"stdout": "x\n4242"},
            {"stdout": "", "pid": 4242},
            {"pid": "4242"},
        ],
    )
    def test_the_pid_is_the_last_line_or_a_field(self, answer: object) -> None:
        assert parse_dispatch(answer) == DispatchReply(pid=4242)  # type: ignore[arg-type]

    def test_a_directory_that_was_there_is_told(self) -> None:
        assert parse_dispatch("mkdir: exists\nOPENAGENTS_RUN_EXISTS\n") == DispatchReply(exists=True)

    def test_a_failure_names_its_code(self) -> None:
        assert parse_dispatch("OA_ERROR=missing_tool base64\n").error == "missing_tool:base64"

    @pytest.mark.parametrize(
        "answer",
        [
            "",
            "\n",
            "abc",
            "0",
            "-5",
            "1.5",
            "99999999999",
            "4242 x",
            "٤٢",
            {},
            {"pid": True},
            {"stdout": 4242},
            {"pid": -1},
            "OA_ERROR=<script>\n",
        ],
    )
    def test_anything_else_is_invalid(self, answer: object) -> None:
        with pytest.raises(ReplyInvalid) as error:
            parse_dispatch(answer)  # type: ignore[arg-type]

        assert error.value.code == "box_response_invalid"


class TestProbe:
    def test_present_with_and_without_a_pid(self) -> None:
        assert parse_probe("OA_PRESENT=1\nOA_PID=4242\n").pid == 4242
        assert parse_probe("OA_PRESENT=1\n").pid is None
        assert not parse_probe("OA_PRESENT=0\n").present

    @pytest.mark.parametrize("pid", ["", "x", "-1", "0", "99999999999999999999"])
    def test_a_pid_that_is_none_is_unknown(self, pid: str) -> None:
        assert parse_probe(f"OA_PRESENT=1\nOA_PID={pid}\n").pid is None

    @pytest.mark.parametrize(
        "answer", ["", "OA_PRESENT=\n", "OA_PRESENT=2\n", "OA_PRES", "OA_ERROR=cannot_create_directory\n"]
    )
    def test_without_a_clear_word_it_is_invalid(self, answer: str) -> None:
        with pytest.raises(ReplyInvalid):
            parse_probe(answer)


class TestPoll:
    def test_a_whole_reply(self) -> None:
        reply = parse_poll(POLL, offset=7)

        assert reply == PollReply(True, LogPiece(7, 12, b"hello"), None, True)
        assert reply.log.next_offset == 12

    def test_the_order_of_lines_and_noise_do_not_matter(self) -> None:
        lines = ["Welcome!", *reversed(POLL.splitlines()), "OA_", "OA_X=1", "oa_size=5"]

        assert parse_poll("\r\n".join(lines)) == parse_poll(POLL)

    def test_a_minimal_reply(self) -> None:
        reply = parse_poll("OA_PRESENT=1\nOA_SIZE=0\nOA_DATA=\nOA_EXIT=17\nOA_ALIVE=0\n", offset=0)

        assert reply == PollReply(True, LogPiece(), Exit(17), False)
        assert reply.is_drained

    def test_base64_in_several_lines_of_width_is_one(self) -> None:
        encoded = base64.b64encode(b"x" * 90).decode()

        assert (
            parse_poll(f"OA_PRESENT=1\nOA_SIZE=90\nOA_DATA={encoded[:60]} {encoded[60:]}\n").log.data
            == b"x" * 90
        )

    def test_how_it_ended(self) -> None:
        reply = parse_poll(POLL + "OA_EXIT=137\nOA_SIGNAL=9\nOA_MEMORY=1\nOA_END=20\n")

        assert reply.exit == Exit(137, 9, memory=True, log_size=20)

    @pytest.mark.parametrize("length", range(1, len(HELLO)))
    def test_cut_data_do_not_move_the_offset(self, length: int) -> None:
        reply = parse_poll(POLL[: POLL.index("OA_DATA=") + 8 + length], offset=7)

        assert (reply.log.data, reply.log.next_offset, reply.log.cut) == (b"", 7, True)

    @pytest.mark.parametrize("data", ["aGVsbG8", "aGVs bG8==", "aGVs...bG8=", "%%%%", "aGVsbG8h"])
    def test_garbled_data_do_not_move_the_offset(self, data: str) -> None:
        reply = parse_poll(POLL.replace(HELLO, data), offset=7)

        assert (reply.log.next_offset, reply.log.cut) == (7, True)

    @pytest.mark.parametrize("at", range(len(POLL + "OA_EXIT=0\nOA_END=12\n")))
    def test_a_reply_cut_anywhere_never_claims_a_drained_end(self, at: int) -> None:
        head = "OA_PRESENT=1\nOA_ALIVE=0\nOA_EXIT=0\nOA_END=12\n"
        whole = head + POLL.split("OA_ALIVE=1\n")[1]
        try:
            reply = parse_poll(whole[:at], offset=7)
        except ReplyInvalid:
            return

        assert reply.log.next_offset == 7 or reply.log.data == b"hello"
        assert not reply.is_drained or reply.log.data == b"hello" or whole[:at].endswith("OA_EXIT=0\n")

    def test_an_end_is_drained_when_all_bytes_up_to_it_came(self) -> None:
        ended = POLL.replace("OA_ALIVE=1", "OA_ALIVE=0\nOA_EXIT=0")

        assert parse_poll(ended + "OA_END=12\n").is_drained
        assert parse_poll(ended.replace("OA_SIZE=12", "OA_SIZE=99") + "OA_END=12\n").is_drained
        assert not parse_poll(ended.replace("OA_SIZE=12", "OA_SIZE=99")).is_drained
        assert not parse_poll(POLL).is_drained

    def test_a_log_that_was_shortened_after_the_end_is_drained(self) -> None:
        assert parse_poll(
            "OA_PRESENT=1\nOA_EXIT=0\nOA_END=900\nOA_OFFSET=5\nOA_SIZE=3\nOA_LENGTH=0\nOA_DATA=\n"
        ).is_drained

    @pytest.mark.parametrize(
        "line", ["OA_EXIT=256", "OA_EXIT=-1", "OA_EXIT=", "OA_EXIT=1e3", "OA_EXIT=99999999999999999999"]
    )
    def test_an_impossible_status_is_none(self, line: str) -> None:
        assert parse_poll(f"{POLL}{line}\n").exit is None

    @pytest.mark.parametrize("size", ["-1", "x", "9" * 19, "9" * 5_000])
    def test_an_impossible_size_is_the_end_of_what_came(self, size: str) -> None:
        assert parse_poll(POLL.replace("OA_SIZE=12", f"OA_SIZE={size}")).log.size == 12

    def test_absent(self) -> None:
        assert parse_poll("OA_PRESENT=0\n") == PollReply(False)

    @pytest.mark.parametrize(
        ("answer", "piece"),
        [
            ({"present": True, "log_size": 5, "output": "hello"}, LogPiece(0, 5, b"hello")),
            ({"present": True, "logSize": 10, "output": "world"}, LogPiece(5, 10, b"world")),
            ({"present": True, "output": "é"}, LogPiece(0, 2, "é".encode())),
            ({"present": True, "log_size": 9, "output": b"\xff", "offset": 3}, LogPiece(3, 9, b"\xff")),
            ({"present": True, "log_size": -1, "output": 5}, LogPiece()),
            ({"present": True, "log_size": 3}, LogPiece(3, 3)),
        ],
    )
    def test_a_structured_reply_is_understood(self, answer: dict[str, object], piece: LogPiece) -> None:
        assert parse_poll(answer).log == piece

    def test_a_structured_end(self) -> None:
        reply = parse_poll({"present": True, "exitStatus": 3, "alive": False})

        assert (reply.exit, reply.alive) == (Exit(3), False)
        assert parse_poll({"present": True, "exit_status": True}).exit is None
        assert not parse_poll({"present": False, "output": "x"}).present

    @pytest.mark.parametrize("answer", [{}, {"present": "yes"}, {"present": 1}, {"stdout": None}])
    def test_a_structured_reply_without_a_clear_word_is_invalid(self, answer: dict[str, object]) -> None:
        with pytest.raises(ReplyInvalid):
            parse_poll(answer)

    @pytest.mark.parametrize(
        ("offset", "data"), [(7, b"hello"), (9, b"llo"), (12, b""), (99, b""), (6, b""), (0, b"")]
    )
    def test_bytes_are_taken_only_where_they_join_what_is_there(self, offset: int, data: bytes) -> None:
        assert parse_poll(POLL).log.data_from(offset) == data


class TestKill:
    def test_confirmed_with_the_end_and_the_rest(self) -> None:
        reply = parse_kill(POLL + "OA_CANCELLED=1\nOA_EXIT=0\n")

        assert (reply.cancelled, reply.exit, reply.log.data, reply.remaining) == (True, Exit(0), b"hello", ())

    def test_the_confirmation_alone_is_enough(self) -> None:
        assert parse_kill("OA_CANCELLED=1\n").cancelled

    def test_what_remains_is_listed(self) -> None:
        reply = parse_kill("OA_CANCELLED=0\nOA_REMAINING=12 x 13 -4 99999999999\n")

        assert (reply.cancelled, reply.remaining) == (False, (12, 13))

    @pytest.mark.parametrize(
        "answer", ["", "killed\n", "OA_CANCELLED=yes\n", "OA_CANCELLED\n", "OA_ERROR=missing_tool rm"]
    )
    def test_any_other_text_is_no_confirmation(self, answer: str) -> None:
        with pytest.raises(ReplyInvalid):
            parse_kill(answer)


texts = st.text() | st.lists(
    st.sampled_from(
        [
            "OA_PRESENT",
            "OA_SIZE",
            "OA_DATA",
            "OA_LENGTH",
            "OA_EXIT",
            "OA_PID",
            "OA_CANCELLED",
            "OA_END",
            "=",
            "\n",
            "\r",
            "1",
            "0",
            "-",
            "\0",
            "aGk=",
            "9" * 20,
            "é",
        ]
    )
).map("".join)
values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.binary()
    | st.floats()
    | st.lists(st.integers())
)
mappings = st.dictionaries(
    st.sampled_from(
        [
            "stdout",
            "pid",
            "present",
            "log_size",
            "logSize",
            "output",
            "exit_status",
            "exitStatus",
            "alive",
            "offset",
        ]
    ),
    values,
)


@given(texts | mappings, st.none() | st.integers(0, 100))
def test_no_answer_crashes_and_no_number_leaves_its_range(answer: object, offset: int | None) -> None:
    for parse in (parse_dispatch, parse_probe):
        try:
            pid = parse(answer).pid  # type: ignore[arg-type]
        except ReplyInvalid:
            continue
        assert pid is None or 0 < pid < 2**31
    for parse_log in (parse_poll, parse_kill):
        try:
            reply = parse_log(answer, offset=offset)  # type: ignore[arg-type]
        except ReplyInvalid:
            continue
        assert 0 <= reply.log.offset < 2**63
        assert 0 <= reply.log.size < 2**63 + 2**20
        assert reply.exit is None or 0 <= reply.exit.status <= 255
