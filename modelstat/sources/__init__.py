"""Where models come from: a spec string becomes a model and example inputs. Parsing does not import torch, building does."""

from __future__ import annotations

from modelstat.sources.registry import ORIGINS, Origin, parse, register
from modelstat.sources.source import Built, Source

__all__ = ["ORIGINS", "Built", "Origin", "Source", "parse", "register"]
