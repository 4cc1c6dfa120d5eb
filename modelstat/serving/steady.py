"""A GPU that serves without a pause: prompts are read one by one, and in between a batch of sequences writes together."""

from __future__ import annotations

import msgspec


class Steady(msgspec.Struct, frozen=True):
    """``batch`` places, each taken by the next request as soon as an answer of ``generate`` tokens is written.

    ``prompt_seconds`` (s) is P, the pass of one prompt, which yields the first token; ``step_seconds`` (s) is S, the mean pass in which
    every place writes one token. While a request holds its place for G - 1 steps, each of the B places takes a new prompt once.
    """

    batch: int
    generate: int
    prompt_seconds: float
    step_seconds: float

    @property
    def turn_seconds(self) -> float:
        """How long a request holds its place (s): B P + (G - 1) S.

        >>> Steady(4, 11, 2.0, 1.0).turn_seconds
        18.0
        """
        return self.batch * self.prompt_seconds + (self.generate - 1) * self.step_seconds

    @property
    def requests_per_second(self) -> float:
        """B requests a turn."""
        return self.batch / self.turn_seconds

    @property
    def tokens_per_second(self) -> float:
        """Tokens that are written, those of the prompts' passes included: B G a turn."""
        return self.batch * self.generate / self.turn_seconds

    @property
    def tpot_seconds(self) -> float | None:
        """Mean time per output token after the first (s), the others' prompts in between included: S + (B - 1) P / (G - 1).

        What is left of a turn after the own prompt, over the tokens that are left. (Prompts that are read in a row delay a little less:
        those before the own one are waited for before its first token.) None where no token is left.
        """
        return None if self.generate == 1 else (self.turn_seconds - self.prompt_seconds) / (self.generate - 1)

    @property
    def ttft_seconds(self) -> float | None:
        """Mean time to the first token of a request that finds a place (s): S / 2 + B P^2 / (2 (G - 1) S) + P.

        Prompts go before steps, and arrive at random at the rate r = B / turn that the GPU bears. So a prompt waits for the rest of what
        runs and for the prompts before it as in a queue whose server takes up other work of S whenever it is empty,
        S / 2 + r P^2 / (2 (1 - r P)) (M/G/1 with vacations: Levy and Yechiali 1975; Bertsekas and Gallager, Data Networks, section 3.5),
        where 1 - r P is the share of steps, (G - 1) S / turn. None where nothing but prompts is read: at that rate their queue grows
        without end.
        """
        stepping = (self.generate - 1) * self.step_seconds
        if not stepping:
            return None
        queue = self.batch * self.prompt_seconds**2 / (2.0 * stepping)
        return self.step_seconds / 2.0 + queue + self.prompt_seconds
