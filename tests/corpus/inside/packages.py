"""Modules of packages that are written to be scripted: each name is ``PACKAGE/WHAT``; only what is installed is listed."""

import importlib
import importlib.util
from importlib.metadata import version
from typing import Any, Callable, Dict, List, Tuple

import torch

Built = Tuple[torch.nn.Module, Tuple[Any, ...]]


def _image(side: int = 32) -> torch.Tensor:
    return torch.rand(1, 3, side, side)


def _einops(kind: str, *words: Any, **sizes: int) -> Callable[[], Built]:
    def build() -> Built:
        from einops.layers import torch as layers

        return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), getattr(layers, kind)(*words, **sizes)), (_image(34),)

    return build


def _kornia(path: str, *words: Any, inputs: Tuple[Any, ...] = (), **options: Any) -> Callable[[], Built]:
    def build() -> Built:
        room, _, kind = path.rpartition(".")
        module = getattr(importlib.import_module(f"kornia.{room}"), kind)(*words, **options)
        return module, inputs or (_image(),)

    return build


def _e3nn(kind: str) -> Callable[[], Built]:
    def build() -> Built:
        from e3nn import nn, o3
        from e3nn.util.jit import script

        few = "4x0e + 2x1o"
        if kind == "FullyConnectedTensorProduct":
            module, inputs = o3.FullyConnectedTensorProduct(few, few, few), (torch.rand(5, 10), torch.rand(5, 10))
        elif kind == "Linear":
            module, inputs = o3.Linear(few, few), (torch.rand(5, 10),)
        elif kind == "SphericalHarmonics":
            module, inputs = o3.SphericalHarmonics("0e + 1o + 2e", True), (torch.rand(5, 3),)
        elif kind == "Norm":
            module, inputs = o3.Norm(few), (torch.rand(5, 10),)
        else:
            module = nn.Gate("4x0e", [torch.relu], "2x0e", [torch.sigmoid], "2x1o")
            inputs = (torch.rand(5, 12),)
        return script(module), inputs

    return build


def _segmentation(kind: str, encoder: str) -> Callable[[], Built]:
    def build() -> Built:
        import segmentation_models_pytorch as smp

        return getattr(smp, kind)(encoder, encoder_weights=None, classes=2), (_image(64),)

    return build


def _julius(kind: str, *words: Any) -> Callable[[], Built]:
    def build() -> Built:
        import julius

        return getattr(julius, kind)(*words), (torch.rand(1, 1, 800),)

    return build


def _efficientnet() -> Built:
    from efficientnet_pytorch import EfficientNet

    model = EfficientNet.from_name("efficientnet-b0", num_classes=10)
    model.set_swish(memory_efficient=False)
    return model, (_image(64),)


def _clip() -> Built:
    from open_clip.model import CLIP

    vision = {"layers": 2, "width": 64, "head_width": 16, "patch_size": 8, "image_size": 32}
    text = {"context_length": 8, "vocab_size": 99, "width": 32, "heads": 4, "layers": 2}
    model = CLIP(embed_dim=16, vision_cfg=vision, text_cfg=text, output_dict=True)
    return model, (_image(), torch.randint(0, 99, (1, 8)))


def _world() -> Built:
    from torchscriptworld import World

    return World(), (torch.rand(1, 8000) - 0.5, 16000)


def _distances() -> Built:
    from torch_nl import compute_neighborlist_n2

    class Neighbours(torch.nn.Module):
        """The function as the only thing that a module does: a function has no archive."""

        def forward(
            self, positions: torch.Tensor, cell: torch.Tensor, periodic: torch.Tensor, batch: torch.Tensor
        ) -> Any:
            return compute_neighborlist_n2(2.0, positions, cell, periodic, batch)

    return Neighbours(), (
        torch.rand(4, 3),
        3 * torch.eye(3),
        torch.ones(3, dtype=torch.bool),
        torch.zeros(4, dtype=torch.long),
    )


def _vad() -> Built:
    import silero_vad

    return silero_vad.load_silero_vad(), (torch.rand(1, 512) - 0.5, 16000)


MADE: Dict[str, Callable[[], Built]] = {
    "einops/Rearrange": _einops("Rearrange", "b c h w -> b (h w) c"),
    "einops/Rearrange_split": _einops("Rearrange", "b c (h i) (w j) -> b (c i j) h w", i=2, j=2),
    "einops/Reduce": _einops("Reduce", "b c (h i) (w j) -> b c h w", "max", i=2, j=2),
    "einops/Reduce_mean": _einops("Reduce", "b c h w -> b c", "mean"),
    **{
        f"kornia/{path}": _kornia(path, *words, **options)
        for path, words, options in (
            ("filters.GaussianBlur2d", ((3, 3), (1.5, 1.5)), {}),
            ("filters.Sobel", (), {}),
            ("filters.Laplacian", (3,), {}),
            ("filters.MedianBlur", ((3, 3),), {}),
            ("filters.UnsharpMask", ((3, 3), (1.5, 1.5)), {}),
            ("filters.Canny", (), {}),
            ("color.RgbToHsv", (), {}),
            ("color.RgbToLab", (), {}),
            ("color.RgbToGrayscale", (), {}),
            ("color.HsvToRgb", (), {}),
            ("enhance.AdjustGamma", (0.5,), {}),
            ("enhance.AdjustHue", (0.5,), {}),
            ("enhance.ZCAWhitening", (), {}),
            ("geometry.transform.Resize", ((16, 16),), {}),
            ("geometry.transform.PyrDown", (), {}),
            ("morphology.Dilation", (), {}),
            ("feature.HardNet", (), {"inputs": (torch.rand(2, 1, 32, 32),)}),
            ("feature.SOSNet", (), {"inputs": (torch.rand(2, 1, 32, 32),)}),
            ("feature.HyNet", (), {"inputs": (torch.rand(2, 1, 32, 32),)}),
            ("feature.TFeat", (), {"inputs": (torch.rand(2, 1, 32, 32),)}),
            ("feature.CornerHarris", (0.04,), {"inputs": (torch.rand(1, 1, 32, 32),)}),
            ("losses.SSIMLoss", (5,), {"inputs": (_image(), _image())}),
            ("losses.TotalVariation", (), {}),
            ("contrib.VisionTransformer", (), {"image_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 4}),
        )
    },
    **{f"e3nn/{kind}": _e3nn(kind) for kind in ("FullyConnectedTensorProduct", "Linear", "SphericalHarmonics", "Norm", "Gate")},
    **{
        f"segmentation_models_pytorch/{kind}_{encoder}": _segmentation(kind, encoder)
        for kind, encoder in (
            ("Unet", "resnet18"), ("Unet", "mobilenet_v2"), ("Linknet", "resnet18"), ("FPN", "resnet18"),
            ("PSPNet", "resnet18"), ("PAN", "resnet18"), ("MAnet", "resnet18"), ("DeepLabV3", "resnet18"),
            ("DeepLabV3Plus", "mobilenet_v2"), ("UnetPlusPlus", "resnet18"), ("Unet", "efficientnet-b0"),
        )
    },
    **{
        f"julius/{kind}": _julius(kind, *words)
        for kind, words in (
            ("ResampleFrac", (4, 3)), ("LowPassFilter", (0.1,)), ("HighPassFilter", (0.1,)), ("BandPassFilter", (0.1, 0.2)),
            ("SplitBands", (8000, 3)), ("LowPassFilters", ([0.1, 0.2],)),
        )
    },
    "efficientnet_pytorch/b0": _efficientnet,
    "open_clip/CLIP": _clip,
    "torchscriptworld/World": _world,
    "torch_nl/compute_neighborlist_n2": _distances,
    "silero_vad/shipped": _vad,
}  # fmt: skip


def names() -> List[str]:
    return [name for name in MADE if importlib.util.find_spec(name.partition("/")[0])]


def built(name: str, how: str) -> Any:
    yield MADE[name]()


def version_of(name: str) -> str:
    """Return the version of the package that a name begins with."""
    return version(name.partition("/")[0].replace("_", "-"))
