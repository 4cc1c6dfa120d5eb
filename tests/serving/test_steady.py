"""A GPU that serves without a pause: its formulas against requests that are followed one by one."""

from __future__ import annotations

import random
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelstat.serving.steady import Steady

TIMES = st.floats(1e-4, 10.0)


# By hand: a turn is B P + (G - 1) S, in which B answers of G tokens are written.
@pytest.mark.parametrize(
    ("steady", "turn", "tpot", "ttft"),
    [
        # Alone, nothing comes between two steps.
        (Steady(1, 11, 2.0, 1.0), 2 + 10, 1.0, 0.5 + 4 / 20 + 2),
        # Three other prompts of 2 s in 10 steps: 0.6 s more a token.
        (Steady(4, 11, 2.0, 1.0), 8 + 10, 1 + 6 / 10, 0.5 + 4 * 4 / 20 + 2),
        (Steady(2, 2, 3.0, 5.0), 6 + 5, 5 + 3 / 1, 2.5 + 2 * 9 / 10 + 3),
    ],
)
def test_by_hand(steady: Steady, turn: float, tpot: float, ttft: float) -> None:
    assert steady.turn_seconds == pytest.approx(turn)
    assert steady.requests_per_second == pytest.approx(steady.batch / turn)
    assert steady.tokens_per_second == pytest.approx(steady.batch * steady.generate / turn)
    assert steady.tpot_seconds == pytest.approx(tpot)
    assert steady.ttft_seconds == pytest.approx(ttft)


def test_one_token_is_a_prompt_alone() -> None:
    steady = Steady(4, 1, 2.0, 0.0)
    assert steady.requests_per_second == pytest.approx(1 / 2)
    assert steady.tpot_seconds is None
    assert steady.ttft_seconds is None


@given(st.integers(1, 512), st.integers(2, 1024), TIMES, TIMES)
def test_a_request_holds_its_place_for_its_prompt_and_its_tokens(batch: int, generate: int, prompt: float, step: float) -> None:
    steady = Steady(batch, generate, prompt, step)
    assert steady.tpot_seconds is not None
    assert steady.turn_seconds == pytest.approx(prompt + (generate - 1) * steady.tpot_seconds)


def followed(steady: Steady, left: list[int]) -> tuple[float, float]:
    """Requests/s and mean time per token of places that are always taken; ``left`` steps are left of each first answer."""
    batch, writes, answers = steady.batch, steady.generate - 1, 0
    started = [0.0] * batch
    clock, first, tokens = 0.0, 0.0, 0.0
    while answers < 50 * batch:
        clock += steady.step_seconds
        left = [steps - 1 for steps in left]
        done = [place for place, steps in enumerate(left) if steps == 0]
        for place in done:
            answers += 1
            if answers > batch:  # what was there at the start has no prompt to count from
                tokens += (clock - started[place]) / writes
            else:
                first = clock
        for place in done:
            clock += steady.prompt_seconds
            started[place], left[place] = clock, writes
    return (answers - batch) / (clock - steady.prompt_seconds * len(done) - first), tokens / (answers - batch)


@pytest.mark.parametrize("steady", [Steady(1, 8, 3.0, 1.0), Steady(4, 16, 2.0, 1.0), Steady(9, 10, 0.5, 2.0), Steady(40, 256, 0.1, 0.02)])
def test_places_that_are_taken_one_after_another(steady: Steady) -> None:
    rate, token = followed(steady, random.Random(1).sample(range(1, steady.generate), steady.batch))
    assert rate == pytest.approx(steady.requests_per_second, rel=1e-9)
    assert token == pytest.approx(steady.tpot_seconds, rel=1e-9)


@pytest.mark.parametrize("steady", [Steady(24, 10, 0.5, 2.0), Steady(64, 16, 0.1, 0.02)])
def test_prompts_that_are_read_in_a_row_delay_fewer_tokens(steady: Steady) -> None:
    """More places than steps: some begin together, and wait for each other's prompts before their first token instead."""
    rng = random.Random(1)
    rate, token = followed(steady, [rng.randint(1, steady.generate - 1) for _ in range(steady.batch)])
    assert steady.tpot_seconds is not None
    assert rate == pytest.approx(steady.requests_per_second, rel=0.02)
    assert 0.8 * steady.tpot_seconds < token < steady.tpot_seconds


@pytest.mark.parametrize(("batch", "generate", "prompt", "step"), [(4, 16, 2.0, 1.0), (64, 256, 0.05, 0.02), (16, 8, 0.2, 0.3)])
def test_prompts_that_arrive_at_random(batch: int, generate: int, prompt: float, step: float) -> None:
    """Follow 200,000 requests to their first token, prompts before steps: the mean is the formula's."""
    steady = Steady(batch, generate, prompt, step)
    rng = random.Random(2)
    clock, waited, served = 0.0, 0.0, 0
    queue: deque[float] = deque()
    arrival = rng.expovariate(steady.requests_per_second)
    while served < 200_000:
        if queue:
            clock += prompt
            waited += clock - queue.popleft()
            served += 1
        else:
            clock += step
        while arrival <= clock:
            queue.append(arrival)
            arrival += rng.expovariate(steady.requests_per_second)
    assert waited / served == pytest.approx(steady.ttft_seconds, rel=0.02)
