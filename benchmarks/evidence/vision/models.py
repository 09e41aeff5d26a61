"""One model per architecture; it needs torchvision in both environments."""

import torch
from torchvision import models

from fixtures.declare import Sample, model


@model(
    "library",
    how="trace",
    devices=("cpu",),
    grid={
        "architecture": (
            "alexnet",
            "convnext_tiny",
            "densenet121",
            "efficientnet_b0",
            "efficientnet_v2_s",
            "googlenet",
            "maxvit_t",
            "mnasnet1_0",
            "mobilenet_v2",
            "mobilenet_v3_large",
            "regnet_x_400mf",
            "regnet_y_400mf",
            "resnet18",
            "resnet50",
            "resnext50_32x4d",
            "shufflenet_v2_x1_0",
            "squeezenet1_1",
            "swin_t",
            "swin_v2_t",
            "vgg11_bn",
            "vit_b_16",
            "wide_resnet50_2",
        )
    },
)
def library(architecture):
    return Sample(models.get_model(architecture, weights=None).eval(), example=(torch.randn(2, 3, 224, 224),))
