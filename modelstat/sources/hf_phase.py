"""A language model of transformers in one phase of its work: its head, its tokens and its cache."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from modelstat.errors import BuildError, InputError, UsageError
from modelstat.serving.phase import Phase
from modelstat.sources.source import Built, Source

if TYPE_CHECKING:
    from modelstat.sources.hf import HfSource, Named


class PhaseSource(Source):
    """Another source, walked in a phase. ``model`` is the source of transformers that it leads to."""

    def __init__(self, source: Source, model: HfSource, phase: Phase) -> None:
        self.spec, self.precision = source.spec, source.precision
        self.source, self.model, self.phase = source, model, phase

    @classmethod
    def of(cls, source: Source, phase: Phase) -> PhaseSource:
        """The source in a phase. Raises UsageError if it is not a model of transformers."""
        from modelstat.sources.hf import HfSource
        from modelstat.sources.yaml import YamlSource

        inner = source.inner if isinstance(source, YamlSource) else source
        if not isinstance(inner, HfSource):
            raise UsageError(
                f"{source.spec}: --phase is for language models of transformers, as in hf:llama or a model file that names one"
            )
        return cls(source, inner, phase)

    def key(self) -> dict[str, str]:
        """What decides the model, and the phase."""
        return {**self.source.key(), "phase": str(self.phase)}

    def build(self, inputs: str | None = None, batch: int | None = None, *, weights: bool = False) -> Built:
        """Build it with its head, the tokens of the phase and the cache before it.

        Raises UsageError for inputs, which the phase makes, and for a model that does not do the phase; InputError for more tokens than
        the model has positions.
        """
        from modelstat.sources.hf import maker
        from modelstat.sources.hf_config import configs_in, offline
        from modelstat.sources.weightless import build_real, build_weightless

        if inputs is not None:
            raise UsageError(f"--input {inputs}: a phase makes its own input, leave it out and give {self.phase.option.split()[0]}")
        self.model.require()
        try:
            from modelstat.sources.hf_cache import cache_for
        except ImportError as error:
            raise BuildError("--phase needs a newer transformers, whose cache is made of layers: `pip install -U transformers`") from error
        with offline():
            named = _with_head(self.model.named(None), self.spec)
            self._check_positions(named.config)
            for config in configs_in(named.config):
                config.use_cache = True
            cache = cache_for(named.config, self.phase, self.spec)
            used = 1 if batch is None else batch
            given, notes = self._call(named, cache, used)
            if weights:
                named, shrunk = self.model.fitting(named)
                model, built = self.model.constructed(lambda: build_real(maker(named, True))), shrunk
            else:
                model, built = self.model.constructed(lambda: build_weightless(maker(named, False)))
        return Built(model.eval(), (), given, used, (*notes, *named.notes, *built))

    def _check_positions(self, config: Any) -> None:
        from modelstat.sources.examples import positions

        limit = positions(config)
        wanted = self.phase.past + self.phase.new
        if limit is not None and wanted > limit:
            beyond = f"beyond the {limit} positions of {self.spec}: give fewer tokens"
            if self.phase.request is not None:
                # The last token of an answer is written, never read.
                raise InputError(f"{self.phase.option} are {beyond}, at most {limit + 1} together")
            one_more = " and one more" if self.phase.past else ""
            raise InputError(f"{self.phase.option}{one_more} is {beyond}")

    def _call(self, named: Named, cache: Any, batch: int) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Arguments of the forward, and what the reader must know about them."""
        import torch

        from modelstat.sources.examples import ordinary_token

        if batch < 1:
            raise InputError(f"--batch {batch}: a batch is at least 1")
        phase, taken = self.phase, inspect.signature(named.kind.forward).parameters
        holder = next((name for name in ("cache", "past_key_values") if name in taken), None)
        if holder is None:
            raise UsageError(f"{self.spec}: {named.kind.__name__} takes no cache of keys and values, which --phase needs")
        tokens = torch.full((batch, phase.new), ordinary_token(named.config), dtype=torch.int64, device="cpu")
        given: dict[str, Any] = {"input_ids": tokens, holder: cache, "use_cache": True}
        last = "logits_to_keep" in taken
        if last:
            given["logits_to_keep"] = 1
        if phase.kind == "decode":
            return given, (f"decode: one token of each sequence against a cache of {phase.tokens} positions, which is an input",)
        kept = "of the last position, as generation needs" if last else "of all positions, since this model makes no fewer"
        return given, (f"prefill: a prompt of {phase.tokens} tokens in one pass, logits {kept}",)


def _with_head(named: Named, spec: str) -> Named:
    """The class that generates text. Raises UsageError for a model that has none."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    from modelstat.sources.hf_config import model_class

    config = named.config
    if getattr(config, "is_encoder_decoder", False):
        raise UsageError(f"{spec}: --phase is known for models of a decoder alone, and {named.kind.__name__} has an encoder")
    head = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(config.model_type)
    if head is None or getattr(config, "is_decoder", None) is False:
        raise UsageError(f"{spec}: {named.kind.__name__} does not generate text token by token, which --phase is about")
    if named.kind.__name__ in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        return named
    return named._replace(kind=model_class(str(head), type(config)), notes=(*named.notes, f"{head} is walked: a phase needs the head"))
