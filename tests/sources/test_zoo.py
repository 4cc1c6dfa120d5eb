from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

torchvision = pytest.importorskip("torchvision", reason="the extra `zoo` is not installed")
pytest.importorskip("timm", reason="the extra `zoo` is not installed")

import torch  # noqa: E402
from torch import nn  # noqa: E402

from modelstat.errors import BuildError, InputError, MissingExtraError, ModelFileError, UnknownModelError, UsageError  # noqa: E402
from modelstat.sources import parse  # noqa: E402
from modelstat.sources.timm import TimmSource  # noqa: E402
from modelstat.sources.torchvision import TorchvisionSource  # noqa: E402


def params(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def shapes(value: Any) -> Any:
    return tuple(value.shape) if isinstance(value, torch.Tensor) else type(value)(map(shapes, value))


CLASSIFICATION: list[str] = torchvision.models.list_models(module=torchvision.models)


def test_there_are_eighty_classification_models() -> None:
    assert len(CLASSIFICATION) == 80


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_torchvision_models_have_their_published_parameters_and_no_weights(name: str) -> None:
    # The published number of googlenet leaves out its auxiliary heads, that of inception_v3 has them.
    built = parse(f"{name}(aux_logits=False)" if name == "googlenet" else name).build()
    weights = torchvision.models.get_model_weights(name).DEFAULT
    assert params(built.model) == weights.meta["num_params"]
    crop = weights.transforms.keywords["crop_size"]
    assert shapes(built.args) == ((1, 3, crop, crop),)
    assert built.notes[0] == f"input 3x{crop}x{crop}: torchvision's crop size for {type(weights).__name__}.{weights.name}"
    assert not built.model.training
    assert (built.kwargs, built.batch) == ({}, 1)
    assert sum(p.nbytes for p in built.model.parameters() if not p.is_meta) < 70e6
    assert all(p.is_meta for p in built.model.parameters() if p.nbytes > 65536)
    assert not any("real (random) weights" in note for note in built.notes)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fcn_resnet50", [(1, 3, 520, 520)]),
        ("fasterrcnn_mobilenet_v3_large_320_fpn", [[(3, 800, 800)]]),
        ("raft_small", [(1, 3, 512, 512), (1, 3, 512, 512)]),
        ("r3d_18", [(1, 3, 16, 112, 112)]),
        ("mvit_v2_s", [(1, 3, 16, 224, 224)]),
        ("quantized_inception_v3", [(1, 3, 299, 299)]),
        ("maxvit_t(input_size=(448, 448))", [(1, 3, 448, 448)]),
        ("vit_b_16(image_size=384)", [(1, 3, 384, 384)]),
    ],
)
def test_default_inputs_of_other_tasks(name: str, expected: list[Any]) -> None:
    built = parse(f"torchvision:{name}").build()
    assert list(shapes(built.args)) == expected
    assert built.notes[0].startswith("input 3x")


def test_a_detection_model_takes_a_list_with_one_image_per_sample() -> None:
    built = parse("ssdlite320_mobilenet_v3_large").build("3x320x320", 2)
    assert shapes(built.args) == ([(3, 320, 320), (3, 320, 320)],)
    assert built.batch == 2


@pytest.mark.parametrize(
    ("spec", "inputs", "note", "positions"),
    [
        # (384 / 16)^2 + 1 = 577 tokens, (256 / 16) x (128 / 16) + 1 = 129
        ("vit_b_16", "3x384x384", "built with image_size=384, since vit_b_16 takes images of one size only", 577),
        (
            "timm:vit_tiny_patch16_224",
            "3x384x384",
            "built with img_size=384, since vit_tiny_patch16_224 takes images of one size only",
            577,
        ),
        (
            "timm:vit_tiny_patch16_224",
            "3x256x128",
            "built with img_size=(256, 128), since vit_tiny_patch16_224 takes images of one size only",
            129,
        ),
    ],
)
def test_a_model_of_one_image_size_is_built_for_the_one_given(spec: str, inputs: str, note: str, positions: int) -> None:
    built = parse(spec).build(inputs)
    assert built.notes == (note,)
    embedding = built.model.get_parameter("encoder.pos_embedding" if spec == "vit_b_16" else "pos_embed")
    assert embedding.shape[1] == positions


@pytest.mark.parametrize("spec", ["resnet18", "timm:resnet18", "vit_b_16"])
def test_nothing_is_noted_where_nothing_was_decided(spec: str) -> None:
    assert parse(spec).build("3x224x224").notes == ()


TIMM = {
    # Parameters in millions, as timm's own results tables print them for the size that each was trained at.
    "resnet50": 25.56, "resnetv2_50": 25.55, "efficientnet_b0": 5.29, "mobilenetv3_large_100": 5.48, "vit_base_patch16_224": 86.57,
    "deit3_small_patch16_224": 22.06, "swin_tiny_patch4_window7_224": 28.29, "convnext_tiny": 28.59, "convnextv2_nano": 15.62,
    "regnety_016": 11.20, "densenet121": 7.98, "mixer_b16_224": 59.88, "ghostnet_100": 5.18, "coat_lite_tiny": 5.72, "levit_128": 9.21,
    "maxvit_tiny_tf_224": 30.92, "beit_base_patch16_224": 86.53, "xception41": 26.97, "nfnet_f0": 71.49, "tf_efficientnetv2_s": 21.46,
}  # fmt: skip


@pytest.mark.parametrize("name", TIMM)
def test_timm_models_have_their_published_parameters_and_no_weights(name: str) -> None:
    built = parse(f"timm:{name}").build()
    assert params(built.model) / 1e6 == pytest.approx(TIMM[name], abs=0.0051)
    assert all(p.is_meta for p in built.model.parameters() if p.nbytes > 65536)
    assert not built.model.training
    sizes = "x".join(map(str, built.args[0].shape[1:]))
    assert built.notes == (f"input {sizes}: timm's default_cfg for {name}",)


def test_a_timm_tag_chooses_the_default_input() -> None:
    assert shapes(parse("timm:convnext_base.fb_in22k_ft_in1k_384").build().args) == ((1, 3, 384, 384),)
    assert shapes(parse("timm:resnet18(in_chans=1)").build().args) == ((1, 1, 224, 224),)
    assert shapes(parse("timm:vit_tiny_patch16_224(img_size=96)").build().args) == ((1, 3, 96, 96),)


def test_a_bare_name_is_torchvisions_before_it_is_timms() -> None:
    assert type(parse("resnet18").build().model).__module__ == "torchvision.models.resnet"
    assert type(parse("resnet18d").build().model).__module__ == "timm.models.resnet"


def test_arguments_reach_the_constructor() -> None:
    # 512 features to 10 classes with a bias, instead of 1000: 513 x 990 fewer.
    assert params(parse("resnet18").build().model) - params(parse("resnet18(num_classes=10)").build().model) == 513 * 990


def test_weights_are_real_and_seeded_on_request() -> None:
    one, other = (parse("squeezenet1_1").build(weights=True).model for _ in range(2))
    assert not one.training
    for first, second in zip(one.parameters(), other.parameters(), strict=True):
        assert first.device.type == "cpu"
        assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "resnet5O",
            r"'resnet5O' is not a model of torchvision or timm; the nearest are torchvision:resnet50, .*timm:resnet50.*; "
            r"a model of your own is named by its file, as in `modelstat path/file\.py:build`",
        ),
        ("torchvision:resnt50", r"'torchvision:resnt50' is not a model of torchvision; the nearest are torchvision:resnet50, "),
        (
            "timm:resnet50.nothing",
            r"'timm:resnet50.nothing' is not a model of timm; the nearest are timm:resnet50\.\w+, timm:resnet50\.\w+, timm:",
        ),
        ("timm:resnet5O.a1_in1k", r"the nearest are timm:resnet50, "),
        ("qqqqqqqq", r"'qqqqqqqq' is not a model of torchvision or timm; there are torchvision:resnet50, .*; a model of your own"),
    ],
)
def test_an_unknown_name_lists_the_nearest(spec: str, message: str) -> None:
    with pytest.raises(UnknownModelError, match=message) as caught:
        parse(spec).build()
    assert "\n" not in str(caught.value)


def test_a_missing_library_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimmSource, "installed", classmethod(lambda cls: False))
    with pytest.raises(
        MissingExtraError, match=re.escape("timm is not installed, a timm model needs it: install the extra with `pip install -e '.[zoo]'`")
    ):
        parse("timm:resnet50").build()
    with pytest.raises(UnknownModelError, match=r"is not a model of torchvision; the nearest are .*; timm could not be searched"):
        parse("resnet5O").build()
    monkeypatch.setattr(TorchvisionSource, "installed", classmethod(lambda cls: False))
    with pytest.raises(UnknownModelError, match="is not a model of any model library; torchvision and timm could not be searched"):
        parse("resnet50").build()


def test_a_library_that_does_not_fit_torch_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "misfit.py").write_text("raise RuntimeError('operator misfit::nms does not exist\\nsecond line')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(TorchvisionSource, "package", "misfit")
    expected = (
        "misfit is installed but cannot be imported, install the version for your torch: RuntimeError: operator misfit::nms does not exist"
    )
    for spec in ("torchvision:resnet50", "resnet50"):
        with pytest.raises(BuildError) as caught:
            parse(spec).build()
        assert str(caught.value) == expected


def test_a_constructor_that_raises_is_named_with_its_arguments() -> None:
    with pytest.raises(BuildError, match=r"torchvision cannot build resnet18\(widht=3\): TypeError: .*unexpected keyword argument 'widht'"):
        parse("resnet18(widht=3)").build()
    with pytest.raises(BuildError, match=r"torchvision cannot build vit_b_16\(image_size=100\): AssertionError: Input shape indivisible"):
        parse("vit_b_16").build("3x100x100")


@pytest.mark.parametrize("argument", ["weights='DEFAULT'", "weights_backbone='DEFAULT'", "pretrained=True"])
def test_trained_weights_are_refused(argument: str) -> None:
    with pytest.raises(UsageError, match="trained weights are never loaded and change no count"):
        parse(f"torchvision:fcn_resnet50({argument})")
    assert parse("torchvision:resnet18(weights=None)").build().batch == 1


def test_a_file_of_weights_is_no_model() -> None:
    with pytest.raises(ModelFileError, match=r"'net\.pth' holds weights, not a model"):
        parse("net.pth")


def test_mistakes_in_inputs_are_found_before_the_model_is_built() -> None:
    with pytest.raises(InputError, match="--input '3x2y4', position 1"):
        parse("resnet18").build("3x2y4")
