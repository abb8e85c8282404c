"""What holds for every life of a run, whatever the box answers and whenever somebody cancels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from runs.decide import (
    Hold,
    Observation,
    Policy,
    Rest,
    RunView,
    Send,
    Step,
    Trouble,
    TroubleKind,
    Write,
    decide,
)
from runs.states import ACTIVE, MOVES, RunState

START = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = Policy(interval=1.0, wait=0)
FAR = START + timedelta(days=30)

unknown = st.builds(Trouble, st.just(TroubleKind.UNKNOWN), st.just("box_unreachable"))
refused = st.builds(Trouble, st.just(TroubleKind.REFUSED), st.just("box_unauthorized"))
gone = st.builds(Trouble, st.just(TroubleKind.GONE), st.just("box_stopped"))
later = st.builds(
    Trouble,
    st.just(TroubleKind.RETRY_LATER),
    st.just("box_rate_limited"),
    st.sampled_from([None, 0.0, 3.5, 5000.0]),
)
troubles = unknown | refused | gone | later
sizes = st.integers(0, 300)


@st.composite
def answers(draw: st.DrawFn, step: Step = Step.POLL) -> Observation:
    """Anything that a box may say to a command, sensible or not."""
    if draw(st.integers(0, 3)) == 0:
        return Observation(step, trouble=draw(troubles))
    size = draw(st.none() | sizes)
    return Observation(
        step,
        never_ran=draw(st.none() | st.just("dispatch_cannot_write")) if step == Step.DISPATCH else None,
        present=draw(st.none() | st.booleans()),
        pid=draw(st.none() | st.integers(2, 9999)),
        alive=draw(st.none() | st.booleans()),
        exit_status=draw(st.none() | st.none() | st.integers(0, 255)),
        killed=draw(st.none() | st.booleans()),
        log_size=size,
        log_end=draw(st.none() | sizes),
        received=draw(st.integers(0, size or 0)),
        is_cut=draw(st.booleans()),
        asked_to_wait=draw(st.sampled_from([0, 10])),
        waited_seconds=draw(st.sampled_from([0.0, 6.0, 10.5])),
    )


@st.composite
def views(draw: st.DrawFn) -> RunView:
    """Any row, at any moment around its deadline."""
    moments = st.none() | st.integers(-100, 100).map(lambda seconds: START + timedelta(seconds=seconds))
    state = draw(st.sampled_from(list(RunState)))
    return RunView(
        state=state,
        deadline_at=START + timedelta(seconds=draw(st.integers(-50, 50))),
        may_dispatch=draw(st.booleans()) and state == RunState.ADMITTED,
        is_overdue=draw(st.booleans()),
        is_box_gone=draw(st.booleans()),
        dispatch_attempted_at=draw(moments),
        cancellation_requested_at=draw(moments),
        cancellation_effective_at=draw(moments),
        calls_resume_at=draw(moments),
        exit_status=draw(st.none() | st.integers(0, 255)),
        kill_confirmed=draw(st.none() | st.booleans()),
        kill_attempts=draw(st.integers(0, 20)),
        dead_sightings=draw(st.integers(0, 3)),
        quiet_polls=draw(st.integers(0, 40)),
        step_failures=draw(st.integers(0, 40)),
        received=draw(sizes),
        log_size=draw(sizes),
    )


@dataclass
class Life:
    """A row that a worker drives with one command after the other, in simulated time."""

    run: RunView
    now: datetime = START
    sent: list[Step] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    exits_seen: list[int] = field(default_factory=list)
    kill_was_confirmed: bool = False

    def step(self, answer: Any, seconds: float = 0.1) -> bool:
        """One claim, the answer of `answer(step)`, its settlement. False if nothing is due any more."""
        claims = self.run.state == RunState.ADMITTED and self.run.dispatch_attempted_at is None
        may = claims and not self._is_over() and not self._is_held()
        if may:
            self.run = replace(self.run, may_dispatch=True, dispatch_attempted_at=self.now)
        action = decide(self.run, None, self.now, POLICY)
        if isinstance(action, Rest):
            return False
        if isinstance(action, Hold):
            self.now = max(action.until, self.now + timedelta(milliseconds=1))
            return True
        if isinstance(action, Send):
            action = self._send(action, answer, seconds)
        self._write(action)
        return self.run.state in ACTIVE or self.run.kill_confirmed is False

    def _send(self, action: Send, answer: Any, seconds: float) -> Write:
        self.sent.append(action.step)
        if action.step == Step.KILL:
            confirmed = self.run.kill_confirmed or False
            self.run = replace(self.run, kill_attempts=self.run.kill_attempts + 1, kill_confirmed=confirmed)
        seen = answer(action.step)
        self.now += timedelta(seconds=seconds)
        if seen.exit_status is not None and seen.trouble is None and action.step in (Step.POLL, Step.KILL):
            is_read = seen.killed is not None if action.step == Step.KILL else seen.present
            if is_read and self.run.state in ACTIVE and self.run.kill_confirmed is not True:
                self.exits_seen.append(seen.exit_status)
        written = decide(self.run, seen, self.now, POLICY)
        assert isinstance(written, Write)
        if self.run.state in ACTIVE:
            self.run = replace(self.run, received=self.run.received + seen.received)
        return written

    def _write(self, write: Write) -> None:
        before = self.run.state
        known = {name: value for name, value in write.changes.items() if hasattr(self.run, name)}
        self.run = replace(self.run, **known, may_dispatch=False)  # type: ignore[arg-type]
        self.kill_was_confirmed = self.kill_was_confirmed or self.run.kill_confirmed is True
        if write.end is not None:
            self.run = replace(self.run, state=write.end.state)
            self.ends.append(write.end.state.value)
        assert before == self.run.state or (before.value, self.run.state.value) in MOVES
        assert write.next_in is None or write.next_in >= 0
        self.now += timedelta(seconds=write.next_in or 0.0)

    def _is_over(self) -> bool:
        return self.run.cancellation_requested_at is not None or self.now >= self.run.deadline_at

    def _is_held(self) -> bool:
        return self.run.calls_resume_at is not None and self.run.calls_resume_at > self.now


def life(**known: Any) -> Life:
    values: dict[str, Any] = {"state": RunState.ADMITTED, "deadline_at": START + timedelta(seconds=100)}
    return Life(RunView(**values | known))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_it_is_dispatched_at_most_once_and_ends_at_most_once(data: st.DataObject) -> None:
    run = life()
    uncertain = 0

    for _ in range(20):
        if data.draw(st.integers(0, 12)) == 0 and run.run.cancellation_requested_at is None:
            run.run = replace(run.run, cancellation_requested_at=run.now)
        count = run.sent.count(Step.DISPATCH)
        went_on = run.step(lambda step: data.draw(answers(step)))
        if run.sent.count(Step.DISPATCH) > count:
            uncertain += run.run.dispatch_attempted_at is not None  # else it is certain that it did not run
        if not went_on:
            break

    assert uncertain <= 1
    assert len(run.ends) <= 1


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_an_exit_status_that_was_seen_is_the_end(data: st.DataObject) -> None:
    run = life(state=RunState.RUNNING, dispatch_attempted_at=START)

    for _ in range(20):
        if data.draw(st.integers(0, 8)) == 0 and run.run.cancellation_requested_at is None:
            run.run = replace(run.run, cancellation_requested_at=run.now)
        if not run.step(lambda step: data.draw(answers(step))) or run.ends:
            break

    if run.ends and run.exits_seen:
        expected = "completed" if run.run.exit_status == 0 else "failed"
        assert run.ends == [expected]


@settings(max_examples=100, deadline=None)
@given(
    answer=st.sampled_from([TroubleKind.UNKNOWN, TroubleKind.REFUSED, TroubleKind.RETRY_LATER]),
    data=st.data(),
)
def test_a_run_past_its_deadline_ends_within_an_interval_although_every_call_fails(
    answer: TroubleKind, data: st.DataObject
) -> None:
    run = life(state=RunState.RUNNING, dispatch_attempted_at=START)
    pause = (
        data.draw(st.sampled_from([None, 0.0, 2.5, 10_000.0])) if answer == TroubleKind.RETRY_LATER else None
    )

    while not run.ends:
        run.step(lambda step: Observation(step, trouble=Trouble(answer, "box_unreachable", pause)))
        assert run.now <= run.run.deadline_at + timedelta(seconds=POLICY.interval) or run.ends

    assert run.ends == ["timed_out"]
    assert run.run.kill_confirmed is False


@settings(max_examples=100, deadline=None)
@given(views(), st.data())
def test_what_is_not_known_never_ends_a_run_before_its_deadline(run: RunView, data: st.DataObject) -> None:
    run = replace(run, state=data.draw(st.sampled_from(ACTIVE)), deadline_at=FAR)
    seen = Observation(data.draw(st.sampled_from(Step)), trouble=data.draw(unknown))

    write = decide(run, seen, START, POLICY)

    assert isinstance(write, Write)
    assert write.end is None
    assert write.next_in is not None


@settings(max_examples=100, deadline=None)
@given(views(), st.data())
def test_every_row_and_every_answer_has_a_lawful_consequence(run: RunView, data: st.DataObject) -> None:
    before = decide(run, None, START, POLICY)
    seen = data.draw(answers(data.draw(st.sampled_from(Step))))
    is_sent = seen.step == Step.KILL and run.kill_confirmed is not True if run.is_terminal else True
    after = decide(run, seen, START, POLICY) if is_sent else before

    for action in (before, after):
        if not isinstance(action, Write):
            continue
        if run.is_terminal:
            assert action.end is None
            assert "state" not in action.changes
        elif action.end is None:
            assert action.next_in is not None


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_kill_is_repeated_until_it_is_confirmed(data: st.DataObject) -> None:
    run = life(state=RunState.TIMED_OUT, dispatch_attempted_at=START, kill_confirmed=False)
    refusals = data.draw(st.integers(0, 12))

    for _ in range(refusals):
        seen = data.draw(st.sampled_from([{"killed": False}, {"trouble": Trouble(TroubleKind.UNKNOWN, "x")}]))
        assert run.step(lambda step, seen=seen: Observation(step, **seen))
    still_due = run.step(lambda step: Observation(step, killed=True))

    assert not still_due
    assert run.sent == [Step.KILL] * (refusals + 1)
