"""Which libraries register operators that torch alone does not have."""

from typing import Final

REGISTERED_BY: Final = {
    "detectron2": "detectron2",
    "fbgemm": "fbgemm_gpu",
    "image": "torchvision",
    "mmcv": "mmcv.ops",
    "pyg": "pyg_lib",
    "tensorrt": "torch_tensorrt",
    "torch_cluster": "torch_cluster",
    "torch_ipex": "intel_extension_for_pytorch",
    "torch_scatter": "torch_scatter",
    "torch_sparse": "torch_sparse",
    "torch_spline_conv": "torch_spline_conv",
    "torchao": "torchao",
    "torchaudio": "torchaudio",
    "torchtext": "torchtext",
    "torchvision": "torchvision",
    "video_reader": "torchvision",
    "xformers": "xformers",
}
"""Namespace -> the module whose import registers it, of libraries that many models use."""


def how_to_give(namespace: str) -> str:
    """Return what to type so that the gate has the library that registers ``namespace``."""
    module = REGISTERED_BY.get(namespace)
    what = module or f"NAME, the module or shared object that registers {namespace}::"
    return f"run with --library {what}"
