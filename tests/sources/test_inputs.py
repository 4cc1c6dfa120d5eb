from __future__ import annotations

from keyword import iskeyword

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from modelstat.errors import InputError, UsageError
from modelstat.sources.inputs import DTYPES, TORCH_DTYPES, InputPlan, TensorPlan, parse_inputs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3x224x224", [TensorPlan((3, 224, 224))]),
        ("3X224×224", [TensorPlan((3, 224, 224))]),
        ("10", [TensorPlan((10,))]),
        ("scalar", [TensorPlan(())]),
        ("3x224x224:fp16", [TensorPlan((3, 224, 224), "float16")]),
        ("3x224x224,10:int64", [TensorPlan((3, 224, 224)), TensorPlan((10,), "int64")]),
        (" 3x224x224 , 10 : torch.int64 ", [TensorPlan((3, 224, 224)), TensorPlan((10,), "int64")]),
        ("ids=128:int64,mask=128:bool", [TensorPlan((128,), "int64", "ids"), TensorPlan((128,), "bool", "mask")]),
        ("3x8x8,step=scalar:long", [TensorPlan((3, 8, 8)), TensorPlan((), "int64", "step")]),
        ("=35x20x512", [TensorPlan((35, 20, 512), None, None, True)]),
        ("x==35x20x512:bf16", [TensorPlan((35, 20, 512), "bfloat16", "x", True)]),
        ("x = 3x4", [TensorPlan((3, 4), None, "x")]),
    ],
)
def test_forms_of_inputs(text: str, expected: list[TensorPlan]) -> None:
    assert parse_inputs(text) == InputPlan(tuple(expected))


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 1, "a shape is missing"),
        ("3x224x", 1, "'' in '3x224x' is not a size"),
        ("3x0x224", 1, "'0' in '3x0x224' is not a size of at least 1"),
        ("3x-1x224", 1, "'-1' in '3x-1x224'"),
        ("3x224x224,", 11, "a shape is missing"),
        ("3x224x224, 3*4", 12, "'3*4' in '3*4'"),
        ("3x4:fp17", 5, "no dtype is called 'fp17'"),
        ("ids=128:int65", 9, "no dtype is called 'int65'"),
        ("ids=", 5, "a shape is missing"),
        ("ids=8,mask=8,8", 14, "'8' has no name, but follows an input that has one"),
        ("ids=8,ids=8", 7, "'ids' is given twice"),
        ("3x4:fp16:fp16", 1, "is not [name=]SHAPE[:dtype]"),
        ("1.5x2", 1, "'1.5' in '1.5x2'"),
        ("²x3", 1, "'²' in '²x3'"),
    ],
)
def test_mistakes_name_the_text_and_their_position(text: str, position: int, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_inputs(text)
    assert str(caught.value).startswith(f"--input {text!r}, position {position}: ")
    assert reason in str(caught.value)


def test_tensors_are_on_meta_with_the_batch_in_front() -> None:
    args, kwargs, batch = parse_inputs("3x8x8,10:int64,step=scalar,table==5x7:bool").build(4)
    assert batch == 4
    assert [(tuple(t.shape), t.dtype, t.device.type) for t in args] == [
        ((4, 3, 8, 8), torch.float32, "meta"),
        ((4, 10), torch.int64, "meta"),
    ]
    assert {name: (tuple(t.shape), t.dtype) for name, t in kwargs.items()} == {
        "step": ((4,), torch.float32),
        "table": ((5, 7), torch.bool),
    }


def test_the_batch_is_one_where_none_is_given() -> None:
    args, _, batch = parse_inputs("3x8x8").build()
    assert (tuple(args[0].shape), batch) == ((1, 3, 8, 8), 1)


def test_literal_shapes_have_no_batch() -> None:
    plan = parse_inputs("=35x20x512,=scalar")
    args, _, batch = plan.build()
    assert ([tuple(t.shape) for t in args], batch) == ([(35, 20, 512), ()], None)
    with pytest.raises(UsageError, match=r"--batch 2 has no effect on --input =35x20x512,=scalar: its shapes are literal"):
        plan.build(2)


def test_the_models_dtype_is_for_inputs_that_name_none() -> None:
    args, _, _ = parse_inputs("8,8:int64").build(1, torch.float16)
    assert [t.dtype for t in args] == [torch.float16, torch.int64]


def test_a_tensor_that_cannot_be_is_refused() -> None:
    with pytest.raises(
        InputError, match="--input 999999999x999999999x999999999: 999999999x999999999x999999999 has more bytes than a tensor can"
    ):
        parse_inputs("999999999x999999999x999999999").build()
    with pytest.raises(InputError, match="is not a size of at least 1"):
        parse_inputs("9" * 5000)


@pytest.mark.parametrize("batch", [0, -1])
def test_a_batch_is_at_least_one(batch: int) -> None:
    with pytest.raises(InputError, match=f"--batch {batch}: a batch is at least 1"):
        parse_inputs("3").build(batch)


def test_every_dtype_word_is_one_of_torchs() -> None:
    assert set(DTYPES.values()) <= TORCH_DTYPES
    assert all(isinstance(getattr(torch, name), torch.dtype) for name in TORCH_DTYPES)


shapes = st.lists(st.integers(1, 10**6), max_size=5).map(tuple)
dtypes = st.one_of(st.none(), st.sampled_from(sorted(TORCH_DTYPES)))
identifiers = st.from_regex(r"[^\W\d]\w{0,8}", fullmatch=True).filter(lambda name: name.isidentifier() and not iskeyword(name))
positional = st.builds(TensorPlan, shapes, dtypes, st.none(), st.booleans())
named = st.builds(TensorPlan, shapes, dtypes, identifiers, st.booleans())
plans = st.tuples(st.lists(positional, max_size=3), st.lists(named, max_size=3, unique_by=lambda plan: plan.name)).filter(any)


@given(plans.map(lambda parts: InputPlan((*parts[0], *parts[1]))))
def test_the_canonical_text_is_read_back(plan: InputPlan) -> None:
    assert parse_inputs(str(plan)) == plan


@given(st.text("x=,:0123 fpscalr", max_size=20) | st.text(max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        plan = parse_inputs(text)
    except InputError:
        return
    assert parse_inputs(str(plan)) == plan
