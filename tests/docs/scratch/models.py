"""The models that the pages name, small: what a command does is tried here, not what a model is worth."""

import torch
from torch import nn

from fixtures.breaks.calls import LabelCoverage
from fixtures.breaks.numbers import EnlargeThumbnail, thumbnail
from fixtures.declare import Sample, model


@model("dlrm", tags=("ranking", "ads"), covers=("aten::linear",))
@model("dlrm_traced", how="trace", tags=("ranking", "ads"), covers=("aten::linear",))
@model("price_ranker", tags=("ranking",), covers=("aten::linear",))
def dlrm():
    return Sample(nn.Linear(8, 2), example=(torch.randn(4, 8),), single=(torch.randn(1, 8),))


@model("bert", tags=("text",), covers=("aten::gelu",))
@model("bert_traced", how="trace", tags=("text",), covers=("aten::gelu",))
@model("served_bert", how="trace", tags=("text",), covers=("aten::gelu",))
def bert_traced():
    return Sample(nn.Sequential(nn.Linear(8, 8), nn.GELU()), example=(torch.randn(2, 8),), single=(torch.randn(1, 8),))


@model("label_coverage", tags=("vision",), covers=("aten::adaptive_avg_pool2d",), devices=("cpu",))
def label_coverage():
    return Sample(LabelCoverage(), example=(torch.randint(0, 1000, (1, 2, 12, 12)),))


@model("enlarge_thumbnail", tags=("vision",), covers=("aten::upsample_bicubic2d",), devices=("cpu",))
def enlarge_thumbnail():
    return Sample(EnlargeThumbnail(), example=(thumbnail(1),))
